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
//! run. Elements are f32. Products are not verified here; the bench `spmm` does that.

mod candidates;
mod matrices;
pub mod measured_rates;
mod once;
mod statistics;

use crate::harness::cusparse::CusparseOptions;
use crate::harness::exit_code::exit_code;
use crate::harness::json_lines::JsonLines;
use crate::harness::measure::{Effort, measure};
use crate::harness::run_options::RunOptions;
use candidates::{Candidate, Setting, candidates};
use clap::Parser;
use matrices::{Matrix, Set};
use once::Once;
use serde::Serialize;
use sprs::CsMatI;
use statistics::{Statistics, row_permutation};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use warprow::device::{Device, DeviceBuffer};
use warprow::{DeviceCsr, RowOrder, Spmm, SpmmKernel, SpmmOptions, generate};

/// Maximum number of elements of X and of Y.
const MAX_ELEMENTS: usize = 400_000_000;

/// Random elements, which X repeats.
const RANDOM_ELEMENTS: usize = 1 << 22;

/// Samples of a time, and work before the first one: the device is busy from one candidate to the next.
const SAMPLES: u32 = 5;
const WARM_UP: Duration = Duration::from_millis(2);

/// Clusters are given up in a case where they take more than this multiple of the time of the caller's order.
const MAX_OF_CLUSTERED: f64 = 1.15;

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
    clustered: Option<Statistics>,
}

/// A line for a matrix and a number of features.
#[derive(Serialize)]
struct CaseLine<'a> {
    bench: &'static str,
    line: &'static str,
    matrix: &'static str,
    set: Set,
    kind: &'static str,
    features: u32,
    results: &'a [Measured],
}

/// A line for whole products of a matrix with a number of features.
#[derive(Serialize)]
struct OnceLine<'a> {
    bench: &'static str,
    line: &'static str,
    matrix: &'static str,
    features: u32,
    results: &'a [Once],
}

/// The time of a candidate.
#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    candidate: Candidate,
    /// What ran.
    kernel: &'static str,
    order: &'static str,
    lanes: Option<u32>,
    column_blocks: u32,
    /// The plan in words, of its own choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    plan_ms: f64,
    order_ms: Option<f64>,
    statistics_ms: Option<f64>,
    /// Making and timing candidates, of a plan that measures, and how many.
    measuring_ms: Option<f64>,
    candidates: usize,
    /// The time that the cost model predicts, and what bounds it.
    predicted_ms: Option<f64>,
    predicted_bound: Option<&'static str>,
    ms: Option<f64>,
    ms_min: Option<f64>,
}

fn run(options: &Options) -> anyhow::Result<()> {
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
    let chosen: Vec<&Matrix> = matrices::all()
        .filter(|matrix| options.set.is_none_or(|set| set == matrix.set))
        .filter(|matrix| {
            options.matrices.is_empty() || options.matrices.iter().any(|name| name == matrix.name)
        })
        .filter(|matrix| !on_emulator || matrix.set == Set::Emulator)
        .filter(|matrix| on_emulator || matrix.set != Set::Emulator)
        .collect();
    let elements = |matrix: &&Matrix, features: u32| {
        let length = matrix.rows.max(matrix.cols) as usize * features as usize;
        (length <= MAX_ELEMENTS).then_some(length)
    };
    let features_of = |matrix: &Matrix| match &options.features[..] {
        [] => matrix.set.features().to_vec(),
        asked_for => asked_for.to_vec(),
    };
    let most = chosen.iter().flat_map(|matrix| {
        let features = features_of(matrix).into_iter();
        features.filter_map(|features| elements(matrix, features))
    });
    let most = most.max().unwrap_or(0);
    let x = dense(&device, most, options.run.seed)?;
    let mut y = device.uninitialized::<f32>(most)?;
    for matrix in chosen {
        if started.elapsed() > Duration::from_secs(options.seconds) {
            println!("no time is left for {}", matrix.name);
            continue;
        }
        let begun = Instant::now();
        let a = matrix.generate(options.run.seed)?;
        let stored = DeviceCsr::upload(&device, a.view())?;
        let generated = begun.elapsed();
        if !options.no_statistics && !options.once {
            lines.write(&matrix_line(matrix, &a, &stored, options.run.seed)?)?;
        }
        let described = begun.elapsed();
        for features in features_of(matrix) {
            if elements(&matrix, features).is_none() {
                continue;
            }
            if options.once {
                let results = once::measure_all(&stored, features, &x, &mut y, cusparse.as_ref())?;
                lines.write(&OnceLine {
                    bench: "plans",
                    line: "once",
                    matrix: matrix.name,
                    features,
                    results: &results,
                })?;
            } else {
                let results = case(&stored, features, &x, &mut y, options)?;
                lines.write(&CaseLine {
                    bench: "plans",
                    line: "case",
                    matrix: matrix.name,
                    set: matrix.set,
                    kind: matrix.kind,
                    features,
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

/// Random elements on the device.
fn dense(device: &Device, len: usize, seed: u64) -> anyhow::Result<DeviceBuffer<f32>> {
    let random = generate::dense::<f32>(1, RANDOM_ELEMENTS.min(len), seed)?;
    let random = random.as_slice().unwrap_or(&[]);
    let mut elements = Vec::with_capacity(len);
    while elements.len() < len {
        let rest = random.len().min(len - elements.len());
        elements.extend_from_slice(&random[..rest]);
    }
    Ok(device.upload(&elements)?)
}

fn matrix_line<'a>(
    matrix: &'a Matrix,
    a: &CsMatI<f32, u32, u32>,
    stored: &DeviceCsr<f32>,
    seed: u64,
) -> anyhow::Result<MatrixLine<'a>> {
    let clustered = row_permutation(stored, RowOrder::Clustered)?;
    Ok(MatrixLine {
        bench: "plans",
        line: "matrix",
        matrix,
        seed,
        nnz: a.nnz(),
        given: Statistics::of(a, None),
        clustered: clustered.map(|order| Statistics::of(a, Some(&order))),
    })
}

/// The times for one number of features.
fn case(
    stored: &DeviceCsr<f32>,
    features: u32,
    x: &DeviceBuffer<f32>,
    y: &mut DeviceBuffer<f32>,
    runs: &Options,
) -> anyhow::Result<Vec<Measured>> {
    let mean_row = stored.pattern().nnz() as f64 / stored.pattern().rows().max(1) as f64;
    let mut results: Vec<Measured> = Vec::new();
    let mut best = None;
    for candidate in candidates(features, mean_row) {
        let is_left_out = match candidate.setting {
            Setting::Own => false,
            Setting::Measured => runs.no_measured,
            Setting::Set => runs.own_only || candidate.is_clustered() && clusters_lose(&results),
        };
        if is_left_out {
            continue;
        }
        let options = candidate.options(features);
        let mut plan = Spmm::<f32>::plan_device(stored, options)?;
        if candidate.setting != Setting::Set {
            // The first plan has the driver compile kernels.
            drop(plan);
            plan = Spmm::<f32>::plan_device(stored, options)?;
        }
        let is_set = candidate.setting == Setting::Set;
        if is_set
            && (lacks_shared_x(&plan, candidate, features)
                || runs_already(&results, &plan, candidate, features))
        {
            continue;
        }
        let measured = time(&plan, candidate, features, x, y, best)?;
        let fastest = measured.ms.into_iter().chain(best);
        best = fastest.min_by(f64::total_cmp);
        results.push(measured);
    }
    Ok(results)
}

/// Whether X is to be in shared memory, and does not fit there.
fn lacks_shared_x(plan: &Spmm<f32>, set: Candidate, features: u32) -> bool {
    let has_shared_x = |name: &&str| name.contains("shared_x");
    set.shared_x == Some(true) && !plan.entry_points(features).iter().any(has_shared_x)
}

/// Whether another candidate that the sweep sets has run with the same choices: not every request has an instance.
fn runs_already(results: &[Measured], plan: &Spmm<f32>, set: Candidate, features: u32) -> bool {
    results.iter().any(|other| {
        other.candidate.setting == Setting::Set
            && (other.candidate.task_size, other.candidate.joined) == (set.task_size, set.joined)
            && other.candidate.shared_x == set.shared_x
            && (other.kernel, other.order)
                == (plan.kernel_for(features).name(), plan.order().name())
            && (other.lanes, other.column_blocks) == (plan.lanes(features), plan.column_blocks())
    })
}

/// Whether `vector` was clearly slower with the rows in clusters than in the caller's order, with the same lanes and
/// blocks of columns.
fn clusters_lose(results: &[Measured]) -> bool {
    let vector = |result: &&Measured| {
        result.kernel == SpmmKernel::Vector.name() && result.candidate.setting == Setting::Set
    };
    let clustered = results.iter().filter(vector);
    let mut clustered = clustered.filter(|result| result.candidate.is_clustered());
    clustered.any(|clustered| {
        let given = results.iter().filter(vector).find(|given| {
            !given.candidate.is_clustered()
                && given.candidate.task_size.is_none()
                && given.candidate.joined.is_none()
                && (given.lanes, given.column_blocks) == (clustered.lanes, clustered.column_blocks)
        });
        let ratio = given.and_then(|given| Some(clustered.ms? / given.ms?));
        ratio.is_some_and(|ratio| ratio > MAX_OF_CLUSTERED)
    })
}

fn time(
    plan: &Spmm<f32>,
    candidate: Candidate,
    features: u32,
    x: &DeviceBuffer<f32>,
    y: &mut DeviceBuffer<f32>,
    best: Option<f64>,
) -> anyhow::Result<Measured> {
    let (x_len, y_len) = (
        plan.cols() * features as usize,
        plan.rows() * features as usize,
    );
    let effort = Effort::of(SAMPLES).against(best).warmed_up_for(WARM_UP);
    let timing = measure(plan.device(), effort, || {
        plan.run(x.slice(..x_len)?, features as usize, y.slice_mut(..y_len)?)
    })?;
    let times = plan.times();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let prediction = plan.prediction(features);
    Ok(Measured {
        candidate,
        kernel: plan.kernel_for(features).name(),
        order: plan.order().name(),
        lanes: plan.lanes(features),
        column_blocks: plan.column_blocks(),
        plan: (candidate.setting != Setting::Set).then(|| plan.to_string()),
        plan_ms: ms(times.preprocessing),
        order_ms: times.ordering.map(ms),
        statistics_ms: times.statistics.map(ms),
        measuring_ms: times.measuring.map(ms),
        candidates: plan.measurements().len(),
        predicted_ms: prediction.map(|(time, _)| ms(time)),
        predicted_bound: prediction.map(|(_, bound)| bound),
        ms: timing.map(|timing| timing.median),
        ms_min: timing.map(|timing| timing.min),
    })
}

/// The options of a plan that is told a number of features, or none.
fn told(features: Option<u32>) -> SpmmOptions {
    let mut options = SpmmOptions::new();
    options.features = features;
    options
}
