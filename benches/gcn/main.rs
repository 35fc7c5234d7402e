//! A graph convolutional network, each operator and the whole, against the time in which the device copies their bytes.
//!
//! ```text
//! cargo bench --bench gcn                                       # a GPU if there is one
//! cargo bench --bench gcn -- --network stanford --output gcn.jsonl
//! ```
//!
//! benches/peers/gcn_torch.py runs the same networks in PyTorch and prints the same lines. Times are the device's, by events
//! around many launches with no synchronisation between. `floor_ms` is the time of a copy of as many bytes as the operator has to move,
//! each operand once. Results are verified against f64 at a sample of nodes. On the emulator a small graph is run once and not timed.

#![allow(
    dead_code,
    unused_imports,
    reason = "cargo sets cfg(test) for a bench without a harness too, which has no tests"
)]

mod bench;
#[path = "../harness/cuda_library.rs"]
mod cuda_library;
#[path = "../harness/exit_code.rs"]
mod exit_code;
#[path = "../harness/floor.rs"]
mod floor;
#[path = "../harness/json_lines.rs"]
mod json_lines;
#[path = "../harness/measure.rs"]
mod measure;
mod networks;
mod options;
mod report;
#[path = "../harness/run_options.rs"]
mod run_options;
mod verification;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    exit_code::exit_code(bench::run(&options::Options::parse()), "results")
}
