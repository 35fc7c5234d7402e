//! Multiplies a sparse matrix by a dense one, on the GPU if there is one and on the emulator otherwise, and checks the
//! result.

mod command;
mod memory;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum, builder::PossibleValue};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use warprow::device::Selector;
use warprow::reference::{Operation, Verification, WholeProduct};
use warprow::{
    CsrMatrix, Device, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16, generate,
};

/// Multiplies a sparse matrix by a dense one of random numbers, and checks the result against a reference in f64.
#[derive(Parser)]
#[command(name = "spmm")]
struct Options {
    /// A Matrix Market file, .mtx or .mtx.gz [default: the dependencies of Debian's packages]
    matrix: Option<PathBuf>,

    /// Columns of the dense matrix
    #[arg(long, default_value_t = 32)]
    features: u32,

    /// The kernel [default: what the plan picks]
    #[arg(long)]
    kernel: Option<KernelArgument>,

    /// auto, cuda, cuda:N or emulator [default: what WARPROW_DEVICE says, else auto]
    #[arg(long)]
    device: Option<Selector>,

    /// The type of the elements
    #[arg(long = "type", value_enum, default_value_t = ElementType::F32)]
    element: ElementType,

    /// Seed of the dense matrix's random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum ElementType {
    F32,
    F64,
    F16,
    Bf16,
}

/// A kernel, given by its name.
#[derive(Clone, Copy)]
struct KernelArgument(SpmmKernel);

impl ValueEnum for KernelArgument {
    fn value_variants<'a>() -> &'a [Self] {
        const COUNT: usize = SpmmKernel::ALL.len();
        const ALL: [KernelArgument; COUNT] = {
            let mut all = [KernelArgument(SpmmKernel::ALL[0]); COUNT];
            let mut i = 0;
            while i < COUNT {
                all[i] = KernelArgument(SpmmKernel::ALL[i]);
                i += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.summary()))
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match options.element {
        ElementType::F32 => run::<f32>(&options),
        ElementType::F64 => run::<f64>(&options),
        ElementType::F16 => run::<f16>(&options),
        ElementType::Bf16 => run::<bf16>(&options),
    };
    command::exit_code(outcome)
}

/// Everything from the file to the verdict; whether the result verified.
fn run<T: SpmmElement>(options: &Options) -> Result<bool> {
    let out = &mut io::stdout();
    let (name, a) = command::matrix::<T>(options.matrix.as_deref())?;
    let longest = a.outer_iterator().map(|row| row.nnz()).max().unwrap_or(0);
    let device = command::open_device(options.device, out)?;
    let (rows, cols, nnz) = (a.rows(), a.cols(), a.nnz());
    writeln!(
        out,
        "matrix   {name}: {rows} x {cols}, {nnz} nonzeros, the longest row has {longest}"
    )?;

    let features = options.features as usize;
    // The emulator keeps copies of X and Y in the same memory.
    let copies = if device.is_emulator() { 2 } else { 1 };
    let elements = (rows as u128 + cols as u128) * features as u128;
    memory::check(
        &format!("dense matrices of {cols} x {features} and {rows} x {features} elements"),
        elements * size_of::<T>() as u128 * copies,
    )?;
    let kernel = options.kernel.map(|argument| argument.0);
    let spmm_options = SpmmOptions::new()
        .features(options.features)
        .tuning(SpmmTuning::new().kernel(kernel));
    let spmm = Spmm::plan(&device, a.view(), spmm_options)?;
    writeln!(
        out,
        "kernel   {}: {}",
        spmm.kernel().name(),
        spmm.kernel().summary()
    )?;
    match spmm.launch_config(features)? {
        Some(launch) => writeln!(out, "launch   {launch}")?,
        None => writeln!(out, "launch   none: the product is empty")?,
    }

    let x = generate::dense::<T>(cols, features, options.seed)?;
    let x_device = device.upload(x.as_slice().context("a generated matrix is contiguous")?)?;
    let mut y_device = device.uninitialized::<T>(rows * features)?;
    let time = if device.is_emulator() {
        emulate(&device, &spmm, || {
            Ok(spmm.run(&x_device, features, &mut y_device)?)
        })?
    } else {
        time(&device, || {
            Ok(spmm.run(&x_device, features, &mut y_device)?)
        })?
    };
    writeln!(
        out,
        "time     {}",
        time.describe(spmm.flops(features), spmm.bytes(features))
    )?;

    let y = ndarray::Array2::from_shape_vec((rows, features), y_device.download()?)?;
    let operation = Operation::new().depth(spmm.summation_depth(longest, features));
    let verification = operation.verify(a.view(), x.view(), y.view());
    writeln!(out, "check    {verification}")?;
    drop(spmm);
    let exact = check_exactly(&device, &a, spmm_options, options)?;
    if exact.ok() {
        writeln!(
            out,
            "exact    all entries of a product of small whole numbers, with the same nonzeros"
        )?;
    } else {
        writeln!(
            out,
            "exact    no, with small whole numbers and the same nonzeros: {exact}"
        )?;
    }
    Ok(verification.ok() && exact.ok())
}

/// Compares a product of small whole numbers, which is exact: by a plan for the same nonzeros and with the same
/// options.
fn check_exactly<T: SpmmElement>(
    device: &Device,
    structure: &CsrMatrix<T>,
    spmm_options: SpmmOptions,
    options: &Options,
) -> Result<Verification> {
    let (features, seed) = (options.features as usize, options.seed);
    let whole = WholeProduct::<T>::new(structure.view(), features, seed);
    let spmm = Spmm::plan(device, whole.a(), spmm_options)?;
    Ok(whole.verify(spmm.multiply(whole.x().view())?.view()))
}

/// How long a run takes.
enum Time {
    /// On a GPU, measured by events: median, minimum and maximum of all samples.
    Measured {
        median: Duration,
        least: Duration,
        most: Duration,
    },
    /// On the emulator, the host's time: it tells nothing about a GPU.
    Emulated(Duration),
}

impl Time {
    fn describe(&self, flops: u128, bytes: u128) -> String {
        match self {
            Self::Emulated(wall) => format!("{:.2} s, emulated, no GPU timing", wall.as_secs_f64()),
            Self::Measured {
                median,
                least,
                most,
            } => {
                let seconds = median.as_secs_f64();
                format!(
                    "{:.1} us on the device, the median of {SAMPLES} samples of {RUNS} runs ({:.1} to {:.1}): \
                     {:.0} GFLOP/s, {:.0} MB moved, {:.0} GB/s",
                    seconds * 1e6,
                    least.as_secs_f64() * 1e6,
                    most.as_secs_f64() * 1e6,
                    flops as f64 / seconds / 1e9,
                    bytes as f64 / 1e6,
                    bytes as f64 / seconds / 1e9,
                )
            }
        }
    }
}

/// Samples on a GPU, and the runs of each sample. The host launches the next run while one is in flight, so the time of
/// launches hardly counts.
const SAMPLES: usize = 25;
const RUNS: u32 = 20;

/// Runs often, and takes the time of each sample between two events.
fn time(device: &Device, mut run: impl FnMut() -> Result<(), warprow::Error>) -> Result<Time> {
    for _ in 0..SAMPLES {
        run()?;
    }
    let mut times = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let timer = device.start_timer()?;
        for _ in 0..RUNS {
            run()?;
        }
        times.push(timer.stop()?.context("a GPU has events")? / RUNS);
    }
    times.sort_unstable();
    Ok(Time::Measured {
        median: times[SAMPLES / 2],
        least: times[0],
        most: times[SAMPLES - 1],
    })
}

/// Runs once, and shows how far it is.
fn emulate(
    device: &Device,
    spmm: &Spmm<impl SpmmElement>,
    run: impl FnOnce() -> Result<(), warprow::Error>,
) -> Result<Time> {
    let style = ProgressStyle::with_template("emulating {bar:40} {percent}%, {eta} left")?;
    let bar = ProgressBar::new(spmm.rows() as u64).with_style(style);
    let shown = bar.clone();
    device.set_progress(Some(std::sync::Arc::new(move |done, total| {
        shown.set_length(total);
        shown.set_position(done);
    })));
    let start = Instant::now();
    let outcome = run();
    let wall = start.elapsed();
    device.set_progress(None);
    bar.finish_and_clear();
    outcome?;
    Ok(Time::Emulated(wall))
}
