//! SpMM against cuSPARSE, in one process, on generated graphs of the sizes of well-known ones.
//!
//! ```text
//! cargo bench -p warprow-benches --bench spmm                                          # a GPU if there is one: a choice of graphs
//! cargo bench -p warprow-benches --bench spmm -- --graph ppa,reddit --features 32,128,256 --output spmm.jsonl
//! cargo bench -p warprow-benches --bench spmm -- --kernel all --no-cusparse --graph arxiv
//! cargo bench -p warprow-benches --bench spmm -- --graph all --kind all --features 32,64,128,256,512,33,100 --output all.jsonl --resume
//! cargo bench -p warprow-benches --bench spmm -- --sweep --no-cusparse --graph all           # is the plan's choice the best of those it had?
//! cargo bench -p warprow-benches --bench spmm -- chart all.jsonl all.svg               # the results of a file as a chart; runs nothing
//! ```
//!
//! Each case multiplies a graph with a dense matrix, by the kernel that the plan picks, by those asked for, and by each
//! algorithm of cuSPARSE, where that is found; beside them stands the gather limit, what reading the rows of X costs. Times are the device's, by events around many launches with no
//! synchronisation between; what the launches left in Y is then compared with the product in f64. With all operands
//! the same from launch to launch, what fits the L2 cache stays there, for everybody alike. On the emulator, products are
//! verified and not timed.

mod bench;
pub(crate) mod cases;
mod chart;
mod choices;
mod cusparse_spmm;
mod gather_limit;
mod generated;
mod implementers;
pub(crate) mod on_device;
pub(crate) mod operands;
mod options;
mod ratios;
mod report;
mod results;
mod summary;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod verification;

use crate::harness::exit_code::exit_code;
use clap::Parser;
use options::Command;
use std::process::ExitCode;

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    let options = options::Options::parse();
    let all_right = match &options.command {
        None => bench::run(&options),
        Some(Command::Chart {
            results,
            svg,
            element,
        }) => chart::draw(results, svg, element).map(|()| true),
    };
    exit_code(all_right, "products")
}
