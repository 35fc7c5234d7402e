//! `warprow bench`: every choice of a plan beside the plan's own, and cuSPARSE.

use crate::commands::Global;
use crate::failure::{Failure, Result};
use crate::operands::{self, ElementType, InputOptions};
use crate::output::Out;
use crate::plot;
use crate::progress;
use crate::results;
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::path::PathBuf;
use warprow::{CsrMatrix, Device, bf16, f16};
use warprow_benches::spmm::own_matrix::{BenchElement, Measurement, OwnMatrix, Peer, Step};

pub const EXAMPLES: &str = "\
Examples:
  warprow bench graph.mtx --features 32,128
  warprow bench graph.npz --features 64 --against cusparse --plot graph.svg
  warprow bench graph.mtx --type f16 --json > graph.json

On the emulator there are no times: the products are only verified.";

#[derive(Args)]
pub struct Options {
    /// The sparse matrix A
    a: PathBuf,

    #[command(flatten)]
    input: InputOptions,

    /// Columns of the dense matrix X
    #[arg(
        long,
        value_name = "N,N,..",
        value_delimiter = ',',
        default_value = "32,128"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    features: Vec<u32>,

    /// A library to compare with
    #[arg(long, value_enum)]
    against: Option<Library>,

    /// That library's file or folder [default: searched for]
    #[arg(long, value_name = "PATH", requires = "against")]
    library: Option<PathBuf>,

    /// The type of the elements
    #[arg(long = "type", value_enum, default_value_t = ElementType::F32)]
    element: ElementType,

    /// Samples of each time
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,

    /// A file for a picture of the times
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Seed of X
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..1 << 63))]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Library {
    Cusparse,
}

pub fn run(options: &Options, global: &Global) -> Result<bool> {
    match options.element {
        ElementType::F32 => measure::<f32>(options, global),
        ElementType::F64 => measure::<f64>(options, global),
        ElementType::F16 => measure::<f16>(options, global),
        ElementType::Bf16 => measure::<bf16>(options, global),
    }
}

fn measure<T: BenchElement>(options: &Options, global: &Global) -> Result<bool> {
    let mut out = Out::new(global);
    let a = options.input.sparse::<T>(&options.a)?;
    let name = options
        .a
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let most = options.features.iter().copied().max().unwrap_or(0);
    let elements = (a.rows() as u128 + a.cols() as u128) * u128::from(most);
    operands::check_memory("X and Y", 2 * elements * size_of::<T>() as u128)?;
    let place = results::bytes(options.plot.as_deref(), &mut out)?;
    let device = global.open_device(&mut out)?;
    if options.plot.is_some() && device.is_emulator() {
        let words = "--plot: wanted a GPU, found the emulator, which has no times to draw";
        return Err(Failure::NoDevice(words.to_owned()));
    }
    let peer = match options.against {
        Some(Library::Cusparse) => Some(cusparse(&device, options, &mut out)?),
        None => None,
    };
    out.line("A", format!("{name}: {}", operands::description(&a)))?;
    let bench = OwnMatrix {
        name,
        features: options.features.clone(),
        samples: options.samples,
        seed: options.seed,
    };
    let measured = measurements(&bench, &device, &a, peer, &mut out)?;
    let json: std::result::Result<Vec<Vec<Value>>, _> = measured
        .iter()
        .map(|measurement| measurement.json(&device))
        .collect();
    out.value("results", json.map_err(Failure::other)?.concat());
    // First: the picture may fail.
    out.finish()?;
    if let Some(place) = place {
        let svg = draw(&bench.name, &device, &measured)?;
        place.write_bytes(svg.as_bytes(), &mut out)?;
    }
    Ok(measured.iter().all(Measurement::is_right))
}

fn cusparse(device: &Device, options: &Options, out: &mut Out) -> Result<Peer> {
    if device.is_emulator() {
        let words = "--against cusparse: wanted a GPU, found the emulator alone";
        return Err(Failure::NoDevice(words.to_owned()));
    }
    let peer = Peer::cusparse(device, options.library.as_deref()).map_err(Failure::input)?;
    out.line("against", format!("cuSPARSE {}", peer.version()))?;
    out.value("cusparse", peer.version());
    Ok(peer)
}

/// Runs everything, and prints each table when it is complete.
fn measurements<T: BenchElement>(
    bench: &OwnMatrix,
    device: &Device,
    a: &CsrMatrix<T>,
    peer: Option<Peer>,
    out: &mut Out,
) -> Result<Vec<Measurement>> {
    let bar = progress::steps();
    let mut measured = Vec::new();
    let mut failed = None;
    let begun = |step: Step| {
        bar.set_length(step.count as u64);
        bar.set_position(step.before as u64);
        bar.set_message(format!("{} features, {}", step.features, step.name));
    };
    let done = |measurement: Measurement| {
        let table = measurement.table();
        let verdict = measurement.verdict(device)?;
        bar.suspend(|| {
            let printed = out.text(&format!("\n{table}{verdict}"));
            failed = printed.err();
        });
        measured.push(measurement);
        match failed {
            // The reader of the tables has left; the run ends.
            Some(_) => Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()),
            None => Ok(()),
        }
    };
    let outcome = bench.run(device, a, peer, begun, done);
    bar.finish_and_clear();
    if let Some(failure) = failed {
        return Err(failure);
    }
    outcome.map_err(Failure::other)?;
    Ok(measured)
}

/// The times as bars, a panel for each number of features.
fn draw(name: &str, device: &Device, measured: &[Measurement]) -> Result<String> {
    let title = format!("SpMM of {name} on {}: milliseconds", device.name());
    let most = measured
        .iter()
        .map(|measurement| measurement.times().len())
        .max();
    let size = (
        900,
        40 + (40 + 18 * most.unwrap_or(0) as u32) * measured.len() as u32,
    );
    let svg = plot::svg(size, &title, |area| {
        let panels = area.split_evenly((measured.len(), 1));
        for (measurement, panel) in measured.iter().zip(panels) {
            let times = measurement.times().into_iter();
            let bars: Vec<_> = times.map(|(name, time)| (name.to_owned(), time)).collect();
            let x = format!("{} features", measurement.features());
            plot::rows(&panel, &x, &bars, Measurement::OURS)?;
        }
        Ok(())
    });
    svg.map_err(Failure::input)
}
