//! The operations that can be profiled: their arguments, and how each is planned and run.

use crate::{command, memory};
use anyhow::{Context, Result};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use warprow::spgemm::{multiply, multiply_unsorted};
use warprow::{
    Device, DeviceCsr, Gemm, GemmKernel, GemmOptions, GemmTuning, SpgemmKernel, SpgemmOptions,
    Spmm, SpmmKernel, SpmmOptions, SpmmTuning, generate,
};

/// An operation in f32, and what it is computed from.
#[derive(Subcommand)]
pub enum Operation {
    /// A sparse matrix times a dense one of random numbers
    Spmm(SpmmArguments),
    /// A sparse matrix times another one, or times itself
    Spgemm(SpgemmArguments),
    /// A tall dense matrix times a small one, both of random numbers
    Gemm(GemmArguments),
}

#[derive(Args)]
pub struct SpmmArguments {
    /// A Matrix Market file, .mtx or .mtx.gz [default: the dependencies of Debian's packages]
    matrix: Option<PathBuf>,
    /// Columns of the dense matrix
    #[arg(long, default_value_t = 32)]
    features: u32,
    /// The kernel [default: what the plan picks]
    #[arg(long, value_parser = named(SpmmKernel::ALL, SpmmKernel::name, SpmmKernel::summary))]
    kernel: Option<SpmmKernel>,
    /// Another kernel, to show both side by side
    #[arg(long, value_parser = named(SpmmKernel::ALL, SpmmKernel::name, SpmmKernel::summary))]
    compare: Option<SpmmKernel>,
}

#[derive(Args)]
pub struct SpgemmArguments {
    /// A Matrix Market file, .mtx or .mtx.gz [default: the dependencies of Debian's packages]
    a: Option<PathBuf>,
    /// The matrix to multiply by [default: the same]
    b: Option<PathBuf>,
    /// A rung of the ladder [default: the product's kernels]
    #[arg(long, value_parser = named(SpgemmKernel::ALL, SpgemmKernel::name, SpgemmKernel::summary))]
    kernel: Option<SpgemmKernel>,
    /// Another rung, to show both side by side
    #[arg(long, value_parser = named(SpgemmKernel::ALL, SpgemmKernel::name, SpgemmKernel::summary))]
    compare: Option<SpgemmKernel>,
}

#[derive(Args)]
pub struct GemmArguments {
    /// Rows of the tall matrix
    #[arg(long, default_value_t = 4096)]
    rows: usize,
    /// Columns of the tall matrix, and rows of the small one
    #[arg(long, default_value_t = 128)]
    depth: usize,
    /// Columns of the small matrix
    #[arg(long, default_value_t = 40)]
    cols: usize,
    /// The kernel [default: what the plan picks]
    #[arg(long, value_parser = named(GemmKernel::ALL, GemmKernel::name, GemmKernel::summary))]
    kernel: Option<GemmKernel>,
    /// Another kernel, to show both side by side
    #[arg(long, value_parser = named(GemmKernel::ALL, GemmKernel::name, GemmKernel::summary))]
    compare: Option<GemmKernel>,
}

/// Takes the kernels' names, and shows them with their summaries.
fn named<K: Copy + Send + Sync>(
    all: &'static [K],
    name: fn(K) -> &'static str,
    summary: fn(K) -> &'static str,
) -> impl TypedValueParser<Value = K> {
    let values = all
        .iter()
        .map(move |&kernel| PossibleValue::new(name(kernel)).help(summary(kernel)));
    PossibleValuesParser::new(values).try_map(move |text| {
        let kernel = all.iter().find(|&&kernel| name(kernel) == text);
        kernel.copied().ok_or("no such kernel")
    })
}

/// Which of the kernels of a command line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// That of `--kernel`.
    Kernel,
    /// That of `--compare`.
    Compared,
}

impl Choice {
    fn of<K>(self, kernel: Option<K>, compare: Option<K>) -> Option<K> {
        match self {
            Self::Kernel => kernel,
            Self::Compared => compare,
        }
    }
}

/// What multiplies once, after everything that is done once for its operands.
pub type Run = Box<dyn FnOnce() -> Result<()>>;

impl Operation {
    /// Whether there is a kernel to compare with.
    pub fn compares(&self) -> bool {
        match self {
            Self::Spmm(spmm) => spmm.compare.is_some(),
            Self::Spgemm(spgemm) => spgemm.compare.is_some(),
            Self::Gemm(gemm) => gemm.compare.is_some(),
        }
    }

    /// Uploads and plans.
    pub fn prepare(&self, device: &Device, choice: Choice) -> Result<Run> {
        match self {
            Self::Spmm(arguments) => arguments.prepare(device, choice),
            Self::Spgemm(arguments) => arguments.prepare(device, choice),
            Self::Gemm(arguments) => arguments.prepare(device, choice),
        }
    }
}

impl SpmmArguments {
    fn prepare(&self, device: &Device, choice: Choice) -> Result<Run> {
        let (_, a) = command::matrix::<f32>(self.matrix.as_deref())?;
        let features = self.features as usize;
        check_memory(&[(a.cols(), features), (a.rows(), features)])?;
        let options = SpmmOptions::new()
            .features(self.features)
            .tuning(SpmmTuning::new().kernel(choice.of(self.kernel, self.compare)));
        let spmm = Spmm::plan(device, a.view(), options)?;
        let x = generate::dense::<f32>(a.cols(), features, 1)?;
        let x = device.upload(x.as_slice().context("a generated matrix is contiguous")?)?;
        let mut y = device.uninitialized(a.rows() * features)?;
        Ok(Box::new(move || Ok(spmm.run(&x, features, &mut y)?)))
    }
}

impl SpgemmArguments {
    fn prepare(&self, device: &Device, choice: Choice) -> Result<Run> {
        let (_, a) = command::matrix::<f32>(self.a.as_deref())?;
        let b = match &self.b {
            Some(path) => Some(command::matrix::<f32>(Some(path))?.1),
            None => None,
        };
        let a = DeviceCsr::upload(device, a.view())?;
        let b = match b {
            Some(b) => Some(DeviceCsr::upload(device, b.view())?),
            None => None,
        };
        let kernel = choice.of(self.kernel, self.compare);
        Ok(Box::new(move || {
            let b = b.as_ref().unwrap_or(&a);
            match kernel {
                Some(kernel) => drop(multiply_unsorted(kernel, &a, b)?),
                None => drop(multiply(&a, b, SpgemmOptions::default())?),
            }
            Ok(())
        }))
    }
}

impl GemmArguments {
    fn prepare(&self, device: &Device, choice: Choice) -> Result<Run> {
        let Self {
            rows, depth, cols, ..
        } = *self;
        check_memory(&[(rows, depth), (depth, cols), (rows, cols)])?;
        let w = generate::dense::<f32>(depth, cols, 1)?;
        let kernel = choice.of(self.kernel, self.compare);
        // Who names a kernel may name one that rounds to tf32.
        let options = GemmOptions::new()
            .tf32(kernel.is_some())
            .tuning(GemmTuning::new().kernel(kernel));
        let gemm = Gemm::plan(device, w.view(), None, options)?;
        let x = generate::dense::<f32>(rows, depth, 2)?;
        let x = device.upload(x.as_slice().context("a generated matrix is contiguous")?)?;
        let mut y = device.uninitialized(rows * cols)?;
        Ok(Box::new(move || Ok(gemm.run(&x, rows, &mut y)?)))
    }
}

/// Refuses dense matrices that need more memory than the machine has. The emulator keeps copies of them.
fn check_memory(shapes: &[(usize, usize)]) -> Result<()> {
    let elements = shapes
        .iter()
        .map(|&(rows, cols)| rows as u128 * cols as u128);
    let names: Vec<String> = shapes
        .iter()
        .map(|(rows, cols)| format!("{rows} x {cols}"))
        .collect();
    memory::check(
        &format!("dense matrices of {} elements", names.join(", ")),
        2 * elements.sum::<u128>() * size_of::<f32>() as u128,
    )
}
