//! A graph convolutional network, each operator and the whole, against the time in which the device copies their bytes.
//!
//! ```text
//! cargo bench -p warprow-benches --bench gcn                                       # a GPU if there is one
//! cargo bench -p warprow-benches --bench gcn -- --network stanford --output gcn.jsonl
//! ```
//!
//! benches/peers/gcn_torch.py runs the same networks in PyTorch and prints the same lines. Times are the device's, by events
//! around many launches with no synchronisation between. `floor_ms` is the time of a copy of as many bytes as the operator has to move,
//! each operand once. Results are verified against f64 at a sample of nodes. On the emulator a small graph is run once and not timed.

mod bench;
mod networks;
mod options;
mod report;
#[cfg(test)]
mod tests;
mod verification;

use crate::harness::exit_code::exit_code;
use clap::Parser;
use std::process::ExitCode;

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    exit_code(bench::run(&options::Options::parse()), "results")
}
