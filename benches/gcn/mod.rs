//! A graph convolutional network, each operator and the whole, against the time that copying their bytes takes.
//!
//! ```text
//! cargo bench -p warprow-benches --bench gcn                     # on a GPU if there is one
//! cargo bench -p warprow-benches --bench gcn -- --network stanford --output gcn.jsonl
//! ```
//!
//! With `--save FOLDER` it writes operands and results, on which `benches/peers/gcn_torch.py` runs PyTorch. That
//! compares its results with these, and prints the same lines.
//!
//! The device measures times, by events around many launches without synchronisation in between. `floor_ms` is the time
//! of a copy of as many bytes as the operator has to move, each operand once. The bench verifies all nodes against f64,
//! and then a network of small whole numbers exactly. On the emulator it runs a small graph once and measures no time.

mod bench;
pub(crate) mod networks;
mod options;
mod report;
mod saved;
#[cfg(test)]
mod tests;
pub(crate) mod verification;

use crate::harness::exit_code::exit_code;
use clap::Parser;
use std::process::ExitCode;

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    exit_code(bench::run(&options::Options::parse()), "results")
}
