//! SpMM against cuSPARSE, in one process, on generated graphs of the sizes of well-known ones, and on matrices of
//! files.
//!
//! ```text
//! cargo bench -p warprow-benches --bench spmm                    # some graphs; on the emulator a small one
//! cargo bench -p warprow-benches --bench spmm -- --graph ppa,reddit --features 32,128 --output spmm.jsonl
//! cargo bench -p warprow-benches --bench spmm -- --kernel all --no-cusparse --graph arxiv
//! cargo bench -p warprow-benches --bench spmm -- --graph all --kind all --output all.jsonl --resume
//! cargo bench -p warprow-benches --bench spmm -- --random 200 --seed 1 --output random.jsonl
//! cargo bench -p warprow-benches --bench spmm -- --file a.mtx.gz --file b.npz --output files.jsonl
//! cargo bench -p warprow-benches --bench spmm -- --graph all --sweep --no-cusparse    # every choice a plan has
//! cargo bench -p warprow-benches --bench spmm -- chart all.jsonl all.svg    # draws results, runs nothing
//! ```
//!
//! A case multiplies a graph by a dense matrix: with the kernel that the plan picks, with the kernels asked for, and
//! with each algorithm of cuSPARSE if the library is found: of its SpMV where X has one column. Beside them stand the
//! gather limit, which only reads rows of X, for few features a copy of the product's least bytes, and the floors: the
//! product's bytes over the measured bandwidths of memory and of the L2 cache.
//!
//! The device measures times, by events around many launches without synchronisation in between. Afterwards the bench
//! compares Y with the product in f64. All launches have the same operands, so what fits the L2 cache stays there, for
//! every implementation. A second time is that of a launch after the L2 cache was flushed. The emulator has no times:
//! there, products are only verified.

mod bench;
pub(crate) mod cases;
mod chart;
mod choices;
pub(crate) mod cusparse_spmm;
mod cusparse_spmv;
pub mod floors;
pub mod gather_limit;
mod generated;
mod implementer;
mod implementers;
mod matrix;
pub(crate) mod on_device;
pub(crate) mod operands;
mod options;
mod outcome;
pub mod own_matrix;
pub mod random;
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
