//! SpGEMM against cuSPARSE, in one process: A x A and A x A^T on generated matrices and the one in `data/`.
//!
//! ```text
//! cargo bench --bench spgemm                                       # all matrices; a small one on the emulator
//! cargo bench --bench spgemm -- --matrix rmat57_100k,banded --kernel all --output spgemm.jsonl
//! cargo bench --bench spgemm -- --matrix rmat57_100k --bin-limits bitmap_words=8 --bin-limits chunk_entries=8192
//! ```
//!
//! Times are whole multiplications by the host's clock, with the allocation of C and of all that is needed meanwhile, until
//! the device is done; and of the numeric phase alone, with the structure and the room for C there, in its first run and in those
//! after it. What came out, of the whole and of the last run, is compared with the product in f64, in all rows or in some. On the
//! emulator, products are verified and not timed.

#![allow(
    dead_code,
    unused_imports,
    reason = "cargo sets cfg(test) for a bench without a harness too, which has no tests; tests.rs has these modules under all lints"
)]

mod bench;
mod cases;
#[path = "../harness/cuda_library.rs"]
mod cuda_library;
#[path = "../harness/cusparse/mod.rs"]
mod cusparse;
mod cusparse_spgemm;
#[path = "../harness/exit_code.rs"]
mod exit_code;
#[path = "../harness/json_lines.rs"]
mod json_lines;
#[path = "../harness/named.rs"]
mod named;
mod options;
mod report;
#[path = "../harness/run_options.rs"]
mod run_options;
mod verification;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    exit_code::exit_code(bench::run(&options::Options::parse()), "products")
}
