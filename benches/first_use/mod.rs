//! The first product of a process: the time from an open device to the first result, on the host.
//!
//! ```text
//! cargo bench -p warprow-benches --bench first_use -- --output first_use.jsonl
//! ```
//!
//! The driver compiles each module of PTX when one of its kernels is first wanted, and keeps the machine code in a
//! folder. Each sample is a process of its own, and each pair of samples has a folder of its own: the first process
//! finds it empty, the second finds what the first has left. The time includes upload, planning, compilation, the
//! product and the download. The bench prints how long the driver took for each module. On the emulator, which compiles
//! nothing, each operation runs once.

mod operation;
mod report;
mod sample;

use crate::harness::exit_code::exit_code;
use crate::harness::json_lines::JsonLines;
use crate::harness::run_options::RunOptions;
use clap::{Parser, ValueEnum};
use operation::Operation;
use report::Results;
use std::process::ExitCode;

/// The first product of a process.
#[derive(Clone, Debug, Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench first_use --")]
struct Options {
    /// The device, the file of the results, the seed.
    #[command(flatten)]
    run: RunOptions,

    /// Pairs of processes for each operation
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,

    /// Run this operation in this process, and print a sample
    #[arg(long, hide = true, value_enum)]
    sample: Option<Operation>,
}

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    exit_code(run(&Options::parse()), "results")
}

fn run(options: &Options) -> anyhow::Result<bool> {
    let device = options.run.open_device()?;
    if let Some(operation) = options.sample {
        let sample = operation.sample(&device)?;
        println!("{}", serde_json::to_string(&sample)?);
        return Ok(sample.ok);
    }
    let on_emulator = device.is_emulator();
    let samples = if on_emulator { 1 } else { options.samples };
    let mut file = JsonLines::create(
        options.run.output.as_deref(),
        options.run.environment(&device),
    )?;
    // The processes have the device to themselves.
    drop(device);
    let mut all_right = true;
    for &operation in Operation::value_variants() {
        let [empty, filled] = sample::pairs(operation, samples)?;
        for (cache, samples) in [("empty", empty), ("filled", filled)] {
            let results = Results::of(operation, cache, &samples, on_emulator);
            print!("{results}");
            file.write(&results)?;
            all_right &= results.ok;
        }
    }
    Ok(all_right)
}
