//! `warprow spmm`: sparse times dense.

use crate::commands::Global;
use crate::failure::{Failure, Result};
use crate::operands::{self, ElementType, InputOptions, check_memory};
use crate::output::Out;
use crate::results::ResultOptions;
use crate::timing::Time;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use ndarray::Array2;
use std::path::PathBuf;
use warprow::reference::Operation;
use warprow::{Reduction, Spmm, SpmmElement, SpmmKernel, SpmmOptions, bf16, f16};

pub const EXAMPLES: &str = "\
Examples:
  warprow spmm graph.mtx                             X of 32 columns of random numbers
  warprow spmm graph.npz x.npy -o y.npy
  warprow spmm edges.csv x.npy --transpose --reduction mean -o y.safetensors
  WARPROW_DEVICE=cuda:1 warprow spmm graph.mtx --features 128 --type f16 --json";

#[derive(Args)]
pub struct Options {
    /// The sparse matrix A
    a: PathBuf,

    /// The dense matrix X, with a row for each column of A [default: random numbers]
    x: Option<PathBuf>,

    /// Columns of X if it is random
    #[arg(long, value_name = "N", default_value_t = 32, conflicts_with = "x")]
    features: u32,

    /// The tensor of a safetensors file [default: the only one]
    #[arg(long, value_name = "NAME", requires = "x")]
    tensor: Option<String>,

    #[command(flatten)]
    input: InputOptions,

    #[command(flatten)]
    result: ResultOptions,

    /// The type of the elements
    #[arg(long = "type", value_enum, default_value_t = ElementType::F32)]
    element: ElementType,

    /// How the products of a row are combined
    #[arg(long, value_enum, default_value_t = ReductionArgument(Reduction::Sum))]
    reduction: ReductionArgument,

    /// Multiply by the transpose of A
    #[arg(long)]
    transpose: bool,

    /// The kernel [default: what the plan chooses]
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    kernel: Option<KernelArgument>,

    /// Time the best predicted choices of the plan, and take the fastest
    #[arg(long)]
    measure: bool,

    /// Seed of random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

pub fn run(options: &Options, global: &Global) -> Result<bool> {
    match options.element {
        ElementType::F32 => multiply::<f32>(options, global),
        ElementType::F64 => multiply::<f64>(options, global),
        ElementType::F16 => multiply::<f16>(options, global),
        ElementType::Bf16 => multiply::<bf16>(options, global),
    }
}

fn multiply<T: SpmmElement>(options: &Options, global: &Global) -> Result<bool> {
    let mut out = Out::new(global);
    let a = options.input.sparse::<T>(&options.a)?;
    let (rows, cols) = match options.transpose {
        false => (a.rows(), a.cols()),
        true => (a.cols(), a.rows()),
    };
    if options.x.is_none() {
        let elements = (rows as u128 + cols as u128) * u128::from(options.features);
        // The emulator keeps copies of X and Y in the same memory.
        let what = format!("dense matrices of {} columns", options.features);
        check_memory(&what, 2 * elements * size_of::<T>() as u128)?;
    }
    let shape = (cols, options.features as usize);
    let x = operands::dense::<T>(
        options.x.as_deref(),
        options.tensor.as_deref(),
        shape,
        options.seed,
    )?;
    let features =
        u32::try_from(x.ncols()).map_err(|_| Failure::input("X has 2^32 columns or more"))?;
    let place = options.result.dense(&mut out)?;
    let device = global.open_device(&mut out)?;
    out.line(
        "A",
        format!("{}: {}", options.a.display(), operands::description(&a)),
    )?;
    out.value("rows", a.rows());
    out.value("columns", a.cols());
    out.value("nonzeros", a.nnz());
    out.value("features", features);

    let mut plan_options = SpmmOptions::default();
    plan_options.tuning.kernel = options.kernel.map(|argument| argument.0);
    plan_options.features = Some(features);
    plan_options.reduction = options.reduction.0;
    plan_options.transpose = options.transpose;
    plan_options.measure = options.measure.then_some(true);
    let spmm = Spmm::plan(&device, a.view(), plan_options)?;
    out.paragraph("plan", &spmm)?;
    out.value("kernel", spmm.kernel().name());
    out.value("plan", spmm.to_string());

    let x_device = device.upload(x.as_slice().unwrap_or(&[]))?;
    let mut y_device = device.uninitialized::<T>(rows * x.ncols())?;
    let time = Time::of(&device, "multiplying", || {
        Ok(spmm.run(&x_device, x.ncols(), &mut y_device)?)
    })?;
    out.line(
        "time",
        time.describe(Some(spmm.flops(x.ncols())), spmm.bytes(x.ncols())),
    )?;
    out.value("time", time.json());
    let y =
        Array2::from_shape_vec((rows, x.ncols()), y_device.download()?).map_err(Failure::input)?;

    let right = options.result.no_verify || {
        let a = match options.transpose {
            false => a,
            true => a.transpose_into().to_csr(),
        };
        let operation = Operation::new()
            .reduction(options.reduction.0)
            .depth(spmm.summation_depth(operands::longest_row(&a), x.ncols()));
        let verification = operation.verify(a.view(), x.view(), y.view());
        out.verdict("check", verification.ok(), &verification)?;
        out.value("verified", verification.ok());
        out.value("max_relative_error", verification.max_relative_error);
        verification.ok()
    };
    if let Some(place) = place.and_then(|place| place.if_right(right)) {
        place.write_dense(y.view(), &mut out)?;
    }
    out.finish()?;
    Ok(right)
}

/// A kernel, given by its name.
#[derive(Clone, Copy)]
struct KernelArgument(SpmmKernel);

impl ValueEnum for KernelArgument {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [KernelArgument; SpmmKernel::ALL.len()] = {
            let mut all = [KernelArgument(SpmmKernel::ALL[0]); SpmmKernel::ALL.len()];
            let mut i = 0;
            while i < all.len() {
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

/// A reduction, given by its name.
#[derive(Clone, Copy)]
struct ReductionArgument(Reduction);

impl ValueEnum for ReductionArgument {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ReductionArgument; Reduction::ALL.len()] = {
            let mut all = [ReductionArgument(Reduction::Sum); Reduction::ALL.len()];
            let mut i = 0;
            while i < all.len() {
                all[i] = ReductionArgument(Reduction::ALL[i]);
                i += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}
