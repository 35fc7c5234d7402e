//! Runs an experiment of the book, on the GPU if there is one and on the emulator otherwise.

use anyhow::Result;
use clap::Parser;
use std::io;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use warprow::Device;
use warprow::device::{CounterOptions, DeviceProfile, EmulatorOptions, Schedule};
use warprow_book::Experiment;

/// Runs an experiment of the book.
#[derive(Parser)]
#[command(name = "book")]
struct Options {
    /// Run blocks and threads in a random order, which this number decides (emulator)
    #[arg(long, global = true, value_name = "SEED")]
    random_order: Option<u64>,

    #[command(subcommand)]
    experiment: Experiment,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let device = match Device::open()? {
        gpu if !gpu.is_emulator() => gpu,
        // Blocks run one after the other, so that a fault is the same in each run.
        _ => Device::emulator_of(
            &DeviceProfile::h200(),
            EmulatorOptions {
                workers: NonZeroUsize::new(1),
                schedule: options
                    .random_order
                    .map_or(Schedule::InOrder, |seed| Schedule::Random { seed }),
                counters: Some(CounterOptions::default()),
                ..EmulatorOptions::default()
            },
        ),
    };
    println!("device   {device}");
    warprow_book::load_kernels(&device)?;
    options.experiment.run(&device, &mut io::stdout())?;
    Ok(())
}
