//! SpGEMM against cuSPARSE, in one process: A x A and A x A^T on generated matrices and the one in `data/`.
//!
//! ```text
//! cargo bench -p warprow-benches --bench spgemm                                       # all matrices; a small one on the emulator
//! cargo bench -p warprow-benches --bench spgemm -- --matrix rmat57_100k,banded --kernel all --output spgemm.jsonl
//! cargo bench -p warprow-benches --bench spgemm -- --matrix rmat57_100k --borders bitmap_words=8 --borders chunk=8192
//! ```
//!
//! Times are whole multiplications by the host's clock, with the allocation of C and of all that is needed meanwhile, until
//! the device is done; and of the numeric phase alone, with the structure and the room for C there, in its first run and in those
//! after it. What came out, of the whole and of the last run, is compared with the product in f64, in all rows or in some. On the
//! emulator, products are verified and not timed.

mod bench;
pub(crate) mod cases;
mod cusparse_spgemm;
mod options;
mod report;
#[cfg(test)]
mod tests;
pub(crate) mod verification;

use crate::harness::exit_code::exit_code;
use clap::Parser;
use std::process::ExitCode;

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    exit_code(bench::run(&options::Options::parse()), "products")
}
