//! SpMM against cuSPARSE, in one process, on generated graphs of the sizes of well-known ones.
//!
//! ```text
//! cargo bench --bench spmm                                          # a GPU if there is one: a choice of graphs
//! cargo bench --bench spmm -- --graph ppa,reddit --features 32,128,256 --output spmm.jsonl
//! cargo bench --bench spmm -- --kernel all --no-cusparse --graph arxiv
//! ```
//!
//! Each case multiplies a graph with a dense matrix, by the kernel that the plan picks, by those asked for, and by each
//! algorithm of cuSPARSE, where that is found. Times are the device's, by events around many launches with no
//! synchronisation between; what the launches left in Y is then compared with the product in f64. With all operands
//! the same from launch to launch, what fits the L2 cache stays there, for everybody alike. On the emulator, products are
//! verified and not timed.

#![allow(
    dead_code,
    unused_imports,
    reason = "cargo sets cfg(test) for a bench without a harness too, which has no tests; tests.rs has these modules under all lints"
)]

mod bench;
mod cases;
mod cusparse;
mod measure;
mod operands;
mod options;
mod report;
mod table;
mod verification;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match bench::run(&options::Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("some products are wrong");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
