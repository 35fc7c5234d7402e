//! SpMM, SpGEMM and GCN inference over several devices of a process: the time of each phase, what a model of links
//! predicts, and the speedup over one device.
//!
//! ```text
//! cargo bench -p warprow-benches --bench multi -- --graph products --kind all --parts 1,2,4,8 --output multi.jsonl
//! cargo bench -p warprow-benches --bench multi -- --operation spgemm --rows 281903 --nonzeros 2312497 --kind rmat57
//! cargo bench -p warprow-benches --bench multi -- --operation gcn --network products
//! ```
//!
//! The parts are on all GPUs in turn, or on as many as `--gpus` says; with more parts than GPUs several handles share
//! one. One part is measured first, and speedups are against it; where it does not fit, against the first line that
//! does. cuSPARSE runs on the first device alone.
//!
//! The cost of collecting rows and of copying them from the first device to the second is measured at the start. From
//! it follows the time of the exchange of what a GPU receives. The prediction of the computation is an equal share of
//! the first line's, times the imbalance. On the emulator nothing is timed, and each product is computed once.

mod clock;
mod gcn;
mod graphs;
mod link;
mod options;
mod peer;
mod placement;
mod report;
mod spgemm;
mod spmm;
mod whole_sums;

#[cfg(test)]
mod tests;

use crate::harness::exit_code::exit_code;
use clap::Parser;
use options::{Operation, Options};
use report::Report;
use std::process::ExitCode;

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    exit_code(run(&Options::parse()), "results")
}

fn run(options: &Options) -> anyhow::Result<bool> {
    let first = options.run.open_device()?;
    let mut report = Report::create(options, &first)?;
    match options.operation {
        Operation::Spmm => spmm::run(options, &first, &mut report)?,
        Operation::Spgemm => spgemm::run(options, &first, &mut report)?,
        Operation::Gcn => gcn::run(options, &first, &mut report)?,
    }
    Ok(report.all_right())
}
