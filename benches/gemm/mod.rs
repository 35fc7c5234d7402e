//! XW against cuBLAS, in one process, and LogSoftmax; both against the time that copying as many bytes takes.
//!
//! ```text
//! cargo bench -p warprow-benches --bench gemm                    # on a GPU if there is one
//! cargo bench -p warprow-benches --bench gemm -- --shape 128x16 --kernel all --rows 281903 --output gemm.jsonl
//! ```
//!
//! The device measures times, by events around many launches without synchronisation in between. Afterwards the bench
//! compares all rows of Y with the product in f64; from row 32,768 on, the rows of X repeat. The emulator has no times:
//! there, products are only verified.
//!
//! `--random N` draws N products instead. Of these, the first and the last rows of Y are compared.
//!
//! Results name the entry point that ran. `--sweep` also runs every other instance that can compute the product.
//! `scripts/instances-by-evidence` compares them.

mod bench;
mod choices;
mod cublas;
pub(crate) mod operands;
mod options;
mod random;
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
