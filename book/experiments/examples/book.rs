//! Runs an experiment of the book, on the GPU if there is one and on the emulator otherwise.

use anyhow::{Context, Error, Result, ensure};
use clap::Parser;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use warprow::Device;
use warprow::device::pictures::{self, Picture, Sources};
use warprow::device::{
    CounterOptions, DeviceError, DeviceProfile, EmulatorOptions, Schedule, TracedWarp,
};
use warprow_book::Experiment;

/// Runs an experiment of the book.
#[derive(Parser)]
#[command(name = "book")]
struct Options {
    /// Run blocks and threads in a random order, which this number decides (emulator)
    #[arg(long, global = true, value_name = "SEED")]
    random_order: Option<u64>,

    /// A file for a picture of the launch, or of a fault between two threads (emulator)
    #[arg(long, global = true, value_name = "FILE.svg")]
    picture: Option<PathBuf>,

    /// What the picture of a launch shows: access, banks, source or balance
    #[arg(long, global = true, default_value = "access")]
    view: Picture,

    #[command(subcommand)]
    experiment: Experiment,
}

/// The folder to which the paths of source files are relative.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The warp whose requests pictures show, the first one, and how many of its requests.
const TRACED: TracedWarp = TracedWarp {
    block: 0,
    warp: 0,
    requests: 16,
};

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
        _ => emulator(options),
    };
    println!("device   {device}");
    warprow_book::load_kernels(&device)?;
    let outcome = options.experiment.run(&device, &mut io::stdout());
    if let Some(path) = &options.picture {
        ensure!(device.is_emulator(), "only the emulator draws pictures");
        let picture = match &outcome {
            Ok(_) => launch_picture(&device, options.view)?,
            Err(error) => fault_picture(error),
        };
        if let Some(picture) = picture {
            fs::write(path, picture).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    outcome.map(|_| ())
}

/// An emulator of an H200. Blocks run one after the other, so that a fault is the same in each run.
fn emulator(options: &Options) -> Device {
    let mut counters = CounterOptions::default();
    counters.traces[0] = Some(TRACED);
    let order = options.random_order;
    Device::emulator_of(
        &DeviceProfile::h200(),
        EmulatorOptions::new()
            .workers(NonZeroUsize::new(1))
            .schedule(order.map_or(Schedule::InOrder, |seed| Schedule::Random { seed }))
            .counters(counters),
    )
}

fn launch_picture(device: &Device, view: Picture) -> Result<Option<String>> {
    let report = device
        .last_launch_report()?
        .context("the experiment launches nothing")?;
    let sources = Sources::of_report(&report, Path::new(ROOT));
    Ok(Some(view.draw(
        &report,
        &sources,
        &DeviceProfile::h200().hardware,
    )?))
}

/// The picture of a fault between two threads; `None` for any other error.
fn fault_picture(error: &Error) -> Option<String> {
    let DeviceError::Fault(fault) = error.downcast_ref()? else {
        return None;
    };
    // Both threads run the same kernel, whose code is one file.
    let mut sources = Sources::default();
    sources.read(&fault.location.file, Path::new(ROOT));
    pictures::fault(fault, &sources)
}
