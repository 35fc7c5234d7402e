//! What the emulator costs: microseconds per nonzero and core of a kernel whose lanes meet at every nonzero.
//!
//! ```text
//! cargo bench -p warprow-benches --bench emulator                # a table against the targets
//! cargo bench -p warprow-benches --bench emulator -- --check     # and exit status 1 if one is missed
//! ```

use clap::Parser;
use ndarray::Array2;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use warprow::device::{Checks, EmulatorOptions};
use warprow::reference::verify_spmm;
use warprow::{Device, Error, Spmm, SpmmKernel, SpmmOptions, SpmmTuning, generate};

/// Columns of X: one for each lane of a warp.
const FEATURES: usize = 32;

/// Rows and nonzeros of the graph, an R-MAT one with long rows and empty ones.
const ROWS: u32 = 5_003;
const NONZEROS: u32 = 50_021;
const PROBABILITIES: [f64; 4] = [0.57, 0.19, 0.19, 0.05];

/// Runs of which the fastest counts: other work on the machine only ever adds.
const RUNS: u32 = 5;

/// The checks, and what a nonzero may cost with them, in microseconds of one core.
const TARGETS: [(Checks, &str, f64); 2] = [
    (Checks::BoundsOnly, "bounds only", 2.0),
    (Checks::Full, "full", 2.0),
];

/// The emulator's cost per nonzero and core, against its targets.
#[derive(Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench emulator --")]
struct Options {
    /// Exits with 1 if a target is missed
    #[arg(long)]
    check: bool,

    /// What `cargo bench` passes to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match measure_all() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) if !options.check => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("a target is missed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures every combination of checks and workers; whether all targets are met.
fn measure_all() -> anyhow::Result<bool> {
    let kernel = kernel();
    println!(
        "{} on the emulator, {ROWS} rows, {NONZEROS} nonzeros, {FEATURES} features, fastest of {RUNS} runs",
        kernel.name()
    );
    println!(
        "{:<12} {:>7} {:>10} {:>22} {:>8}",
        "checks", "workers", "ms", "us per nonzero, core", "target"
    );
    let mut workers = vec![NonZeroUsize::MIN, available_parallelism()?];
    workers.dedup();
    let mut all_met = true;
    for (checks, name, target) in TARGETS {
        for &workers in &workers {
            let elapsed = fastest(kernel, checks, workers)?;
            let micros = elapsed.as_secs_f64() * 1e6;
            let cost = micros * workers.get() as f64 / f64::from(NONZEROS);
            let met = cost <= target;
            all_met &= met;
            println!(
                "{name:<12} {workers:>7} {:>10.1} {cost:>22.2} {target:>8.1}{}",
                micros / 1e3,
                if met { "" } else { "  missed" }
            );
        }
    }
    Ok(all_met)
}

/// One warp a row, which shuffles at every nonzero; the first of the ladder if that is not in it.
fn kernel() -> SpmmKernel {
    let mut kernels = SpmmKernel::ALL.iter().copied();
    let by_name = kernels.find(|kernel| kernel.name() == "warp_per_row");
    by_name.unwrap_or(SpmmKernel::ALL[0])
}

/// The time of the fastest run.
fn fastest(kernel: SpmmKernel, checks: Checks, workers: NonZeroUsize) -> anyhow::Result<Duration> {
    let device = Device::emulator(EmulatorOptions::new().workers(workers).checks(checks));
    let a = generate::rmat::<f32>(ROWS, NONZEROS, PROBABILITIES, 1)?;
    let x_host = generate::dense::<f32>(a.cols(), FEATURES, 1)?;
    let x = device.upload(x_host.as_slice().expect("the matrix is row-major"))?;
    let mut y = device.uninitialized(a.rows() * FEATURES)?;
    let options = SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel));
    let spmm = Spmm::plan(&device, a.view(), options)?;
    let mut run = || -> Result<Duration, Error> {
        let start = Instant::now();
        spmm.run(&x, FEATURES, &mut y)?;
        device.synchronize()?;
        Ok(start.elapsed())
    };
    let mut least = run()?;
    for _ in 1..RUNS {
        least = least.min(run()?);
    }
    let y = Array2::from_shape_vec((a.rows(), FEATURES), y.download()?)?;
    let found = verify_spmm(a.view(), x_host.view(), y.view());
    anyhow::ensure!(found.ok(), "{found}");
    Ok(least)
}
