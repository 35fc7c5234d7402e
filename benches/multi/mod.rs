//! SpMM over several devices of a process: the time of each phase, and what a model of links predicts.
//!
//! ```text
//! cargo bench -p warprow-benches --bench multi -- --parts 1,2,4,8 --output multi.jsonl
//! ```
//!
//! The parts are on all GPUs in turn; with more parts than GPUs several handles share one. The cost of collecting rows
//! and of copying them from the first device to the second is measured at the start. From it follows the time of the
//! exchange of what a GPU receives. The prediction of a run adds the measured time of the products alone.
//! On the emulator nothing is timed, and each product is computed once.

mod link;

use crate::harness::exit_code::exit_code;
use crate::harness::json_lines::JsonLines;
use crate::harness::measure::summary;
use crate::harness::run_options::RunOptions;
use clap::{Parser, ValueEnum};
use link::Link;
use serde::Serialize;
use std::process::ExitCode;
use std::time::Instant;
use warprow::generate::{self, Communities};
use warprow::multi::{Devices, MultiSpmmOptions, PartedDense, Spmm};
use warprow::reference::WholeProduct;
use warprow::{CsrMatrix, Device, device::EmulatorOptions};

#[cfg(test)]
mod tests;

/// SpMM over several devices.
#[derive(Clone, Debug, Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench multi --")]
pub(crate) struct Options {
    /// The device, the file of the results, the seed.
    #[command(flatten)]
    run: RunOptions,

    /// The numbers of parts
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8", value_parser = clap::value_parser!(u32).range(1..=64))]
    parts: Vec<u32>,

    /// The kinds of graphs
    #[arg(long, value_delimiter = ',', default_value = "communities,uniform")]
    kind: Vec<Kind>,

    /// Rows of the graphs [default: 2449029; on the emulator 2000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1000..1 << 31))]
    rows: Option<u32>,

    /// Nonzeros of a row, on average
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=300))]
    row_length: u32,

    /// Columns of X
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1024))]
    features: u32,

    /// Samples of each phase
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
}

/// A kind of graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// 80 % of the nonzeros inside communities, which are shuffled.
    Communities,
    /// No communities.
    Uniform,
}

/// A product over so many parts. Times are in milliseconds; null on the emulator.
#[derive(Clone, Debug, Serialize)]
struct Results {
    bench: &'static str,
    graph: &'static str,
    rows: u32,
    nnz: usize,
    features: u32,
    parts: u32,
    /// Different GPUs, or emulators.
    devices: u32,
    imbalance: f64,
    rows_received: u64,
    rows_replicated: u64,
    /// Dividing A, uploading its parts, and planning them.
    plan_ms: Option<f64>,
    /// Uploading the rows of X to their owners.
    distribution_ms: Option<f64>,
    exchange_ms: Option<f64>,
    computation_ms: Option<f64>,
    /// Exchange and computation together.
    ms: Option<f64>,
    gathering_ms: Option<f64>,
    collect_gbytes_per_s: Option<f64>,
    copy_gbytes_per_s: Option<f64>,
    message_us: Option<f64>,
    gap_us: Option<f64>,
    predicted_exchange_ms: Option<f64>,
    predicted_ms: Option<f64>,
    samples: u32,
    /// Whether all entries of the product are exact.
    ok: bool,
}

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    exit_code(run(&Options::parse()), "results")
}

fn run(options: &Options) -> anyhow::Result<bool> {
    let first = options.run.open_device()?;
    let mut file = JsonLines::create(
        options.run.output.as_deref(),
        options.run.environment(&first),
    )?;
    let rows = match options.rows {
        Some(rows) => rows,
        None if first.is_emulator() => 2000,
        None => 2_449_029,
    };
    let mut all_right = true;
    for &kind in &options.kind {
        let a = graph(kind, rows, options)?;
        let product =
            WholeProduct::<f32>::new(a.view(), options.features as usize, options.run.seed);
        for &parts in &options.parts {
            let (devices, distinct) = devices(&first, parts)?;
            let mut results = measure(&product, &devices, options)?;
            (results.graph, results.devices) = (name(kind), distinct);
            predict(&mut results, &devices)?;
            all_right &= results.ok;
            print!("{}", file.write(&results)?);
        }
    }
    Ok(all_right)
}

const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Communities => "communities_shuffled",
        Kind::Uniform => "uniform",
    }
}

fn graph(kind: Kind, rows: u32, options: &Options) -> anyhow::Result<CsrMatrix<f32>> {
    let nonzeros = rows.saturating_mul(options.row_length);
    let least = (2 * options.row_length).clamp(64, rows / 3);
    let communities = Communities {
        sizes: least..=(32 * least).min(rows / 3),
        inside: 0.8,
        shuffled: true,
    };
    Ok(match kind {
        Kind::Communities => generate::communities(rows, nonzeros, &communities, options.run.seed)?,
        Kind::Uniform => generate::uniform(rows, rows, nonzeros, options.run.seed)?,
    })
}

/// A device for each part, and how many different ones they are.
fn devices(first: &Device, parts: u32) -> anyhow::Result<(Devices, u32)> {
    let mut devices = vec![first.clone()];
    let mut distinct = 1;
    for part in 1..parts {
        let device = match first.is_emulator() {
            true => Device::emulator(EmulatorOptions::default()),
            false => match Device::cuda(distinct) {
                Ok(device) if part == distinct => device,
                _ => Device::cuda(part % distinct)?,
            },
        };
        distinct +=
            u32::from(part == distinct && (first.is_emulator() || is_new(&devices, &device)));
        devices.push(device);
    }
    Ok((Devices::of(devices)?, distinct))
}

/// Whether no handle is of the same GPU: the identities of further handles have a suffix.
fn is_new(devices: &[Device], device: &Device) -> bool {
    let gpu = |device: &Device| {
        device
            .identity()
            .split(", handle")
            .next()
            .map(str::to_owned)
    };
    devices.iter().all(|other| gpu(other) != gpu(device))
}

fn measure(
    product: &WholeProduct<f32>,
    devices: &Devices,
    options: &Options,
) -> anyhow::Result<Results> {
    let timed = !devices.first().is_emulator();
    let clock = Clock {
        devices,
        samples: if timed { options.samples } else { 0 },
    };
    let (plan, plan_ms) =
        clock.once(|| Spmm::plan(devices, product.a(), MultiSpmmOptions::default()))?;
    let x = product.x();
    let (mut x, distribution_ms) = clock.once(|| plan.upload(x.view()))?;
    let mut y: PartedDense<f32> = plan.result(options.features as usize)?;
    // The first product compiles kernels.
    plan.run(&mut x, &mut y)?;
    let (whole, gathering_ms) = clock.once(|| plan.download(&y))?;
    let checked = product.verify(whole.view());
    let exchange_ms = clock.median(|| plan.exchange(&mut x))?;
    let computation_ms = clock.median(|| plan.compute(&x, &mut y))?;
    let ms = clock.median(|| plan.run(&mut x, &mut y))?;
    let volume = plan.layout().volume();
    Ok(Results {
        bench: "multi",
        graph: "",
        rows: product.a().rows() as u32,
        nnz: product.a().nnz(),
        features: options.features,
        parts: devices.count().get() as u32,
        devices: 0,
        imbalance: plan.layout().partition().imbalance(),
        rows_received: volume.received,
        rows_replicated: volume.replicated,
        plan_ms,
        distribution_ms,
        exchange_ms,
        computation_ms,
        ms,
        gathering_ms,
        collect_gbytes_per_s: None,
        copy_gbytes_per_s: None,
        message_us: None,
        gap_us: None,
        predicted_exchange_ms: None,
        predicted_ms: None,
        samples: clock.samples,
        ok: checked.ok(),
    })
}

/// Adds the link and the prediction.
fn predict(results: &mut Results, devices: &Devices) -> anyhow::Result<()> {
    let features = results.features as usize;
    let Some(link) = Link::measure(devices, features)? else {
        return Ok(());
    };
    // A GPU does the work of all its parts, one after the other.
    let (parts, gpus) = (f64::from(results.parts), f64::from(results.devices));
    let bytes = results.rows_received as f64 / gpus * (features * size_of::<f32>()) as f64;
    let messages = parts / gpus * (parts - 1.0);
    let exchange = link.milliseconds(bytes, messages, parts / gpus);
    results.predicted_exchange_ms = Some(exchange);
    results.predicted_ms = results
        .computation_ms
        .map(|computation| computation + exchange);
    results.collect_gbytes_per_s = Some(link.collect.bytes_per_second / 1e9);
    results.copy_gbytes_per_s = Some(link.copy.bytes_per_second / 1e9);
    results.message_us = Some(link.message * 1e6);
    results.gap_us = Some(link.gap * 1e6);
    Ok(())
}

/// The host's clock, around work of several devices.
struct Clock<'a> {
    devices: &'a Devices,
    /// 0 if nothing is timed.
    samples: u32,
}

impl Clock<'_> {
    fn once<R, E: Into<anyhow::Error>>(
        &self,
        work: impl FnOnce() -> Result<R, E>,
    ) -> anyhow::Result<(R, Option<f64>)> {
        self.devices.synchronize()?;
        let start = Instant::now();
        let result = work().map_err(Into::into)?;
        self.devices.synchronize()?;
        let elapsed = start.elapsed().as_secs_f64() * 1e3;
        Ok((result, (self.samples > 0).then_some(elapsed)))
    }

    fn median<E: Into<anyhow::Error>>(
        &self,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> anyhow::Result<Option<f64>> {
        let mut times = Vec::new();
        for _ in 0..self.samples {
            times.extend(self.once(&mut work)?.1);
        }
        Ok(summary(times, 1).map(|timing| timing.median))
    }
}
