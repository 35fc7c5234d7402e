//! A graph convolutional network, each operator and the whole, against the time that copying their bytes takes.
//!
//! ```text
//! cargo bench -p warprow-benches --bench gcn                     # on a GPU if there is one
//! cargo bench -p warprow-benches --bench gcn -- --network stanford --output gcn.jsonl
//! ```
//!
//! `benches/peers/gcn_torch.py` runs the same networks in PyTorch and prints the same lines.
//!
//! The device measures times, by events around many launches without synchronisation in between. `floor_ms` is the time
//! of a copy of as many bytes as the operator has to move, each operand once. The bench verifies a sample of the nodes
//! against f64. On the emulator it runs a small graph once and measures no time.

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
