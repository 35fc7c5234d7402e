//! Times of what a plan of SpMM chooses from, for fitting and validating its cost model.
//!
//! ```text
//! cargo bench -p warprow-benches --bench plans -- --output spmm_sweep.jsonl    # on a GPU; minutes
//! cargo bench -p warprow-benches --bench plans -- --set validation --output spmm_sweep.jsonl
//! ```
//!
//! `matrices.rs` lists the matrices, and which of them `scripts/fit-spmm-plan` may fit to. For each there is a line
//! with its statistics, and for each number of features a line with the times of the plan's own choices, predicted and
//! measured, and of each candidate: kernels, orders, lanes, blocks of columns, sizes of tasks, tasks joined. With
//! `--once` there is instead a line with the times of planning and one run, and of cuSPARSE's preprocessing and one
//! run. Elements are f32, unless `--type` names another type. Products are not verified here; the bench `spmm` does
//! that.

mod candidates;
mod case;
mod matrices;
pub mod measured_rates;
mod once;
mod statistics;

use crate::harness::cusparse::CusparseOptions;
use crate::harness::element_type::ElementType;
use crate::harness::exit_code::exit_code;
use crate::harness::json_lines::JsonLines;
use crate::harness::run_options::RunOptions;
use crate::spmm::own_matrix::BenchElement;
use case::{Measured, case};
use clap::Parser;
use matrices::{Matrix, Set};
use once::Once;
use serde::Serialize;
use sprs::CsMatI;
use statistics::{Statistics, row_permutation};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use warprow::device::{Device, DeviceBuffer};
use warprow::spmm::Operand;
use warprow::{DeviceCsr, Element, RowOrder, Scalar, SpmmOptions, bf16, f16, generate};

/// Maximum number of elements of X and of Y.
const MAX_ELEMENTS: usize = 400_000_000;

/// Random elements, which X repeats.
const RANDOM_ELEMENTS: usize = 1 << 22;

/// The options.
#[derive(Clone, Debug, Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench plans --")]
struct Options {
    /// The matrices to run [default: all]
    #[arg(long, value_enum)]
    set: Option<Set>,

    /// Names of matrices to run [default: all of the set]
    #[arg(long = "matrix", value_name = "NAME", value_delimiter = ',')]
    matrices: Vec<String>,

    /// Runs so many random matrices instead
    #[arg(long, value_name = "N")]
    random: Option<u32>,

    /// Seconds after which no further matrix is begun
    #[arg(long, value_name = "N", default_value_t = u64::MAX)]
    seconds: u64,

    /// Runs the plan's own choices alone
    #[arg(long)]
    own_only: bool,

    /// Runs no plans that measure
    #[arg(long)]
    no_measured: bool,

    /// Times whole products instead: planning and one run
    #[arg(long)]
    once: bool,

    /// Writes no statistics of the matrices, which the host takes seconds for
    #[arg(long)]
    no_statistics: bool,

    /// The numbers of features [default: those of the set]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    features: Vec<u32>,

    /// The element type
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value = "f32")]
    element: ElementType,

    #[command(flatten)]
    cusparse: CusparseOptions,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    exit_code(run(&Options::parse()).map(|()| true), "sweeps")
}

/// A line for a matrix.
#[derive(Serialize)]
struct MatrixLine<'a> {
    bench: &'static str,
    line: &'static str,
    #[serde(flatten)]
    matrix: &'a Matrix,
    seed: u64,
    nnz: usize,
    given: Statistics,
    first_column: Option<Statistics>,
    clustered: Option<Statistics>,
}

/// A line for a matrix and a number of features.
#[derive(Serialize)]
struct CaseLine<'a> {
    bench: &'static str,
    line: &'static str,
    matrix: &'a str,
    set: Set,
    kind: &'static str,
    features: u32,
    #[serde(rename = "type")]
    element: &'static str,
    results: &'a [Measured],
}

/// A line for whole products of a matrix with a number of features.
#[derive(Serialize)]
struct OnceLine<'a> {
    bench: &'static str,
    line: &'static str,
    matrix: &'a str,
    features: u32,
    #[serde(rename = "type")]
    element: &'static str,
    results: &'a [Once],
}

fn run(options: &Options) -> anyhow::Result<()> {
    match options.element {
        ElementType::F32 => run_typed::<f32>(options),
        ElementType::F64 => run_typed::<f64>(options),
        ElementType::F16 => run_typed::<f16>(options),
        ElementType::Bf16 => run_typed::<bf16>(options),
    }
}

fn run_typed<T: BenchElement>(options: &Options) -> anyhow::Result<()> {
    let started = Instant::now();
    let device = options.run.open_device()?;
    let mut lines = JsonLines::create(
        options.run.output.as_deref(),
        options.run.environment(&device),
    )?;
    lines.write(&measured_rates::measure_all(&device)?)?;
    let cusparse = match options.once {
        true => options.cusparse.open(&device)?,
        false => None,
    };
    let on_emulator = device.is_emulator();
    let of_set = |matrix: &Matrix| (matrix.clone(), matrix.set.features().to_vec());
    let all = match options.random {
        Some(count) => matrices::random(count, options.run.seed),
        None => matrices::all().map(of_set).collect(),
    };
    let elements = |matrix: &Matrix, features: u32| {
        let length = matrix.rows.max(matrix.cols) as usize * features as usize;
        (length <= MAX_ELEMENTS).then_some(length)
    };
    let chosen: Vec<(Matrix, Vec<u32>)> = all
        .into_iter()
        .filter(|(matrix, _)| options.set.is_none_or(|set| set == matrix.set))
        .filter(|(matrix, _)| {
            options.matrices.is_empty() || options.matrices.iter().any(|name| *name == matrix.name)
        })
        .filter(|(matrix, _)| on_emulator == (matrix.set == Set::Emulator))
        .map(|(matrix, features)| {
            let wanted = match &options.features[..] {
                [] => features,
                asked_for => asked_for.to_vec(),
            };
            let fits = |&features: &u32| elements(&matrix, features).is_some();
            let features = wanted.into_iter().filter(fits).collect();
            (matrix, features)
        })
        .collect();
    let most = chosen.iter().flat_map(|(matrix, features)| {
        let lengths = features.iter();
        lengths.filter_map(|&features| elements(matrix, features))
    });
    let most = most.max().unwrap_or(0);
    let x = dense::<T>(&device, most, options.run.seed)?;
    let mut y = device.uninitialized::<T>(most)?;
    for (matrix, features) in &chosen {
        if started.elapsed() > Duration::from_secs(options.seconds) {
            println!("no time is left for {}", matrix.name);
            continue;
        }
        let begun = Instant::now();
        let a = matrix.generate(options.run.seed)?;
        let stored = upload::<<T as Operand>::Sum>(&device, &a)?;
        let generated = begun.elapsed();
        if !options.no_statistics && !options.once {
            lines.write(&matrix_line::<T>(matrix, &a, &stored, options.run.seed)?)?;
        }
        let of_peer = match &cusparse {
            Some(cusparse) => Some((cusparse, upload::<T>(&device, &a)?)),
            None => None,
        };
        let described = begun.elapsed();
        for &features in features {
            if options.once {
                let peer = of_peer.as_ref().map(|(cusparse, a)| (*cusparse, a));
                let results = once::measure_all(&stored, features, &x, &mut y, peer)?;
                lines.write(&OnceLine {
                    bench: "plans",
                    line: "once",
                    matrix: &matrix.name,
                    features,
                    element: T::NAME,
                    results: &results,
                })?;
            } else {
                let results = case(&stored, features, &x, &mut y, options)?;
                lines.write(&CaseLine {
                    bench: "plans",
                    line: "case",
                    matrix: &matrix.name,
                    set: matrix.set,
                    kind: matrix.kind,
                    features,
                    element: T::NAME,
                    results: &results,
                })?;
            }
        }
        println!(
            "{:<24} {:>9} nonzeros: generated in {:.1} s, described in {:.1} s, all in {:.1} s, at {:.0} s",
            matrix.name,
            a.nnz(),
            generated.as_secs_f64(),
            (described - generated).as_secs_f64(),
            begun.elapsed().as_secs_f64(),
            started.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// Copies a matrix to the device, with its values converted to another type.
fn upload<V: Scalar + Element>(
    device: &Device,
    a: &CsMatI<f32, u32, u32>,
) -> anyhow::Result<DeviceCsr<V>> {
    let a = a.map(|&value| V::from_f64(value.into()));
    Ok(DeviceCsr::upload(device, a.view())?)
}

/// Random elements on the device.
fn dense<T: BenchElement>(
    device: &Device,
    len: usize,
    seed: u64,
) -> anyhow::Result<DeviceBuffer<T>> {
    let random = generate::dense::<T>(1, RANDOM_ELEMENTS.min(len), seed)?;
    let random = random.as_slice().unwrap_or(&[]);
    let mut elements = Vec::with_capacity(len);
    while elements.len() < len {
        let rest = random.len().min(len - elements.len());
        elements.extend_from_slice(&random[..rest]);
    }
    Ok(device.upload(&elements)?)
}

fn matrix_line<'a, T: BenchElement>(
    matrix: &'a Matrix,
    a: &CsMatI<f32, u32, u32>,
    stored: &DeviceCsr<<T as Operand>::Sum>,
    seed: u64,
) -> anyhow::Result<MatrixLine<'a>> {
    let ordered = |order| -> anyhow::Result<_> {
        let order = row_permutation::<T>(stored, order)?;
        Ok(order.map(|order| Statistics::of(a, Some(&order))))
    };
    Ok(MatrixLine {
        bench: "plans",
        line: "matrix",
        matrix,
        seed,
        nnz: a.nnz(),
        given: Statistics::of(a, None),
        first_column: ordered(RowOrder::FirstColumn)?,
        clustered: ordered(RowOrder::Clustered)?,
    })
}

/// The options of a plan that is told a number of features, or none.
fn told(features: Option<u32>) -> SpmmOptions {
    let mut options = SpmmOptions::new();
    options.features = features;
    options
}
