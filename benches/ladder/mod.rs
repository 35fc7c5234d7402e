//! Every rung of the three ladders, on the same matrices, in one run: SpMM, SpGEMM and XW.
//!
//! ```text
//! cargo bench -p warprow-benches --bench ladder -- --output bench/results/h200/ladder.jsonl
//! cargo bench -p warprow-benches --bench ladder -- --family spmm,gemm
//! ```
//!
//! SpMM multiplies each graph with a dense matrix of 32 features, SpGEMM multiplies it with itself. XW is one tall and
//! narrow product. SpMM and XW are timed by the device's clock, over many launches. SpGEMM is timed by the host's
//! clock, from the operands on the device to the finished product, with all that is allocated. Every result is compared
//! with the product in f64. A rung that cannot compute a case has a line that says why. On the emulator the bench
//! verifies one tiny matrix and times nothing.

mod bench;
mod cases;
mod gemm;
mod options;
mod report;
pub(crate) mod rungs;
mod spgemm;
mod spmm;
#[cfg(test)]
mod tests;

use crate::harness::exit_code::exit_code;
use clap::Parser;
use std::process::ExitCode;

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    exit_code(bench::run(&options::Options::parse()), "results")
}
