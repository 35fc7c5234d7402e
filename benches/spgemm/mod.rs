//! SpGEMM against cuSPARSE, in one process: A x A and A x A^T on generated matrices, the one in `data/`, and files.
//!
//! ```text
//! cargo bench -p warprow-benches --bench spgemm                  # all matrices; on the emulator a small one
//! cargo bench -p warprow-benches --bench spgemm -- --matrix rmat57_100k,banded --output spgemm.jsonl
//! cargo bench -p warprow-benches --bench spgemm -- --file a.mtx.gz --output files.jsonl
//! cargo bench -p warprow-benches --bench spgemm -- --matrix rmat57_100k --bin-limits bitmap_words=8 \
//!     --bin-limits chunk_entries=8192
//! ```
//!
//! The host's clock measures two things. One is the whole multiplication, which allocates C and all scratch memory,
//! until the device is done. The other is the numeric phase alone, into an allocated C of known structure: its first
//! run, and the runs after it; the peer there is `cusparseSpGEMMreuse`. The peak of device memory counts what was
//! allocated beside A and B, C included. The bench compares the results of the whole and of the last run with the
//! product in f64, in all rows or a sample. The emulator has no times: there, products are only verified.
//!
//! Results name the entry points of each phase. `--sweep` also multiplies under other limits between the kernels.
//! `scripts/instances-by-evidence` compares the times.

mod bench;
pub(crate) mod cases;
mod choices;
mod cusparse_reuse;
pub(crate) mod cusparse_spgemm;
mod failure;
mod input;
mod launched;
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
