//! Runs an experiment of the book, on the GPU if there is one and on the emulator otherwise.

use anyhow::Result;
use clap::Parser;
use std::io;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use warprow::Device;
use warprow::device::EmulatorOptions;
use warprow_book::Experiment;

/// Runs an experiment of the book.
#[derive(Parser)]
#[command(name = "book")]
struct Options {
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
        _ => Device::emulator(EmulatorOptions {
            workers: NonZeroUsize::new(1),
            ..EmulatorOptions::default()
        }),
    };
    println!("device   {device}");
    warprow_book::load_kernels(&device)?;
    options.experiment.run(&device, &mut io::stdout())
}
