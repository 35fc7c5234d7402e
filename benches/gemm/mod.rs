//! XW against cuBLAS, in one process, and LogSoftmax: against the time in which the device copies as many bytes.
//!
//! ```text
//! cargo bench -p warprow-benches --bench gemm                                             # a GPU if there is one
//! cargo bench -p warprow-benches --bench gemm -- --shape 128x16 --kernel all --rows 281903 --output gemm.jsonl
//! ```
//!
//! Times are the device's, by events around many launches with no synchronisation between; what the launches left in Y is
//! then compared with the product in f64, in a sample of rows. On the emulator, products are verified and not timed.

mod bench;
mod cublas;
pub(crate) mod operands;
mod options;
mod report;
#[cfg(test)]
mod tests;

use crate::harness::exit_code::exit_code;
use clap::Parser;
use std::process::ExitCode;

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    exit_code(bench::run(&options::Options::parse()), "results")
}
