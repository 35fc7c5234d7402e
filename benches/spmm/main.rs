//! SpMM against cuSPARSE, in one process, on generated graphs of the sizes of well-known ones.
//!
//! ```text
//! cargo bench --bench spmm                                          # a GPU if there is one: a choice of graphs
//! cargo bench --bench spmm -- --graph ppa,reddit --features 32,128,256 --output spmm.jsonl
//! cargo bench --bench spmm -- --kernel all --no-cusparse --graph arxiv
//! cargo bench --bench spmm -- --graph all --kind all --features 32,64,128,256,512,33,100 --output all.jsonl --resume
//! cargo bench --bench spmm -- --sweep --no-cusparse --graph all           # is the plan's choice the best of those it had?
//! cargo bench --bench spmm -- chart all.jsonl all.svg               # the results of a file as a chart; runs nothing
//! ```
//!
//! Each case multiplies a graph with a dense matrix, by the kernel that the plan picks, by those asked for, and by each
//! algorithm of cuSPARSE, where that is found; beside them stands the gather limit, what reading the rows of X costs. Times are the device's, by events around many launches with no
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
mod chart;
mod choices;
#[path = "../harness/cuda_library.rs"]
mod cuda_library;
#[path = "../harness/cusparse/mod.rs"]
mod cusparse;
mod cusparse_spmm;
#[path = "../harness/element_type.rs"]
mod element_type;
#[path = "../harness/exit_code.rs"]
mod exit_code;
mod gather_limit;
mod generated;
mod implementers;
#[path = "../harness/json_lines.rs"]
mod json_lines;
#[path = "../harness/measure.rs"]
mod measure;
#[path = "../harness/named.rs"]
mod named;
mod on_device;
mod operands;
mod options;
mod ratios;
mod report;
mod results;
#[path = "../harness/run_options.rs"]
mod run_options;
mod summary;
mod table;
mod verification;

use clap::Parser;
use options::Command;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = options::Options::parse();
    let all_right = match &options.command {
        None => bench::run(&options),
        Some(Command::Chart {
            results,
            svg,
            element,
        }) => chart::draw(results, svg, element).map(|()| true),
    };
    exit_code::exit_code(all_right, "products")
}
