//! What the book's experiments take on a GPU, with sizes beyond its caches.
//!
//! ```text
//! cargo bench -p warprow-benches --bench book -- --output bench/results/h200/book.jsonl
//! ```
//!
//! On the emulator, which has no times, it runs small sizes and only shows that all runs.

use crate::harness::exit_code::exit_code;
use crate::harness::json_lines::{Environment, JsonLines};
use clap::Parser;
use serde::Serialize;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use warprow::Device;
use warprow_book::measure::Measurement;
use warprow_book::{Experiment, copies, scans, spmm, spmv, sums, together, transpose};

/// The time of the book's experiments.
#[derive(Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench book --")]
struct Options {
    /// A file for the results, a JSON object per line
    #[arg(long)]
    output: Option<PathBuf>,

    /// What `cargo bench` passes to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

/// A result, as it is written.
#[derive(Serialize)]
struct Line<'a> {
    bench: &'static str,
    case: &'a str,
    bytes: u64,
    ms: f64,
    ms_min: f64,
    ms_max: f64,
}

/// Runs the bench of the command line.
pub fn main() -> ExitCode {
    // A wrong result is an error of its experiment.
    exit_code(run(&Options::parse()).map(|()| true), "results")
}

fn run(options: &Options) -> anyhow::Result<()> {
    let device = Device::open()?;
    warprow_book::load_kernels(&device)?;
    let mut results = JsonLines::create(options.output.as_deref(), Environment::of(&device))?;
    let out = &mut stdout();
    writeln!(out, "{device}")?;
    // The emulator takes a fraction of the elements.
    let elements = if device.is_emulator() {
        1 << 12
    } else {
        1 << 24
    };
    let side = if device.is_emulator() { 100 } else { 8192 };
    for experiment in experiments(elements, side) {
        writeln!(out, "{experiment:?}")?;
        if let Some(measurement) = experiment.run(&device, out)? {
            results.write(&line(&measurement))?;
        }
    }
    Ok(())
}

fn line(measurement: &Measurement) -> Line<'_> {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    Line {
        bench: "book",
        case: &measurement.case,
        bytes: measurement.bytes,
        ms: ms(measurement.median),
        ms_min: ms(measurement.least),
        ms_max: ms(measurement.most),
    }
}

/// What is measured.
fn experiments(elements: u32, side: u32) -> Vec<Experiment> {
    let copy = |stride, by_four| {
        Experiment::Copy(copies::Options {
            elements,
            stride,
            by_four,
        })
    };
    let mut all: Vec<Experiment> = [1, 2, 4, 8, 32].map(|stride| copy(stride, false)).into();
    all.push(copy(1, true));
    use transpose::Kernel::{Directly, PaddedTiles, Tiles};
    all.extend([Directly, Tiles, PaddedTiles].map(|kernel| {
        Experiment::Transpose(transpose::Options {
            rows: side,
            cols: side,
            kernel,
        })
    }));
    all.extend(
        [together::Counting::Threads, together::Counting::Warps]
            .map(|by| Experiment::Keep(together::Keep { elements, by })),
    );
    all.extend(
        [
            sums::Kernel::Threads,
            sums::Kernel::Warps,
            sums::Kernel::Blocks,
        ]
        .map(|by| Experiment::Sum(sums::Options { elements, by })),
    );
    all.push(Experiment::Scan(scans::Options {
        elements,
        without_tickets: false,
    }));
    all.extend([spmv::Kernel::Thread, spmv::Kernel::Warp].map(|row_by| {
        Experiment::Spmv(spmv::Options {
            matrix: spmv::Matrix::default(),
            row_by,
        })
    }));
    use spmm::Step::{EqualTasks, OrderedTasks, SubWarpPerRow};
    all.extend([SubWarpPerRow, EqualTasks, OrderedTasks].map(|step| {
        Experiment::Spmm(spmm::Options {
            kernels: vec![spmm::Kernel::Step(step)],
            matrix: spmv::Matrix::default(),
        })
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_experiments_run() {
        run(&Options {
            output: None,
            bench: false,
        })
        .unwrap();
    }
}
