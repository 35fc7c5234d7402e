//! XW against cuBLAS, in one process, and LogSoftmax: against the time in which the device copies as many bytes.
//!
//! ```text
//! cargo bench --bench gemm                                             # a GPU if there is one
//! cargo bench --bench gemm -- --shape 128x16 --kernel all --rows 281903 --output gemm.jsonl
//! ```
//!
//! Times are the device's, by events around many launches with no synchronisation between; what the launches left in Y is
//! then compared with the product in f64, in a sample of rows. On the emulator, products are verified and not timed.

#![allow(
    dead_code,
    unused_imports,
    reason = "cargo sets cfg(test) for a bench without a harness too, which has no tests"
)]

mod bench;
mod cublas;
#[path = "../harness/cuda_library.rs"]
mod cuda_library;
#[path = "../harness/element_type.rs"]
mod element_type;
#[path = "../harness/exit_code.rs"]
mod exit_code;
#[path = "../harness/floor.rs"]
mod floor;
#[path = "../harness/json_lines.rs"]
mod json_lines;
#[path = "../harness/measure.rs"]
mod measure;
#[path = "../harness/named.rs"]
mod named;
mod options;
mod report;
#[path = "../harness/run_options.rs"]
mod run_options;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    exit_code::exit_code(bench::run(&options::Options::parse()), "results")
}
