//! Multiplies a sparse matrix by a dense one, on the GPU if there is one and on the emulator otherwise, and checks the result.

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum, builder::PossibleValue};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use warprow::device::Selector;
use warprow::matrix_market::{parse_matrix_market, read_matrix_market};
use warprow::{CsrMatrix, Device, Spmm, SpmmElement, SpmmKernel, SpmmOptions, generate, reference};

/// The dependency graph of the packages of a Debian release (see data/README.md).
const DEFAULT_MATRIX: (&str, &[u8]) = (
    "data/debian-bookworm-depends.mtx.gz",
    include_bytes!("../data/debian-bookworm-depends.mtx.gz"),
);

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

    /// Of the dense matrix's random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum ElementType {
    F32,
    F64,
}

/// A kernel by its name in the table.
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
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
