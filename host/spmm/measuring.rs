//! Plans that time their best predicted candidates and keep the fastest: see [`SpmmOptions::measure`].
//!
//! The model errs where it compares kernels and numbers of lanes; the order of the rows and the blocks of columns that
//! it predicts for each of them are good. So the best candidate of each kernel and number of lanes is timed, and then
//! other sizes of tasks for the two fastest. docs/notes/spmm_plan.md says how good the choices are.

use super::Spmm;
use super::building::OrderedMatrix;
use super::error::SpmmError;
use super::measurements::{Measurements, SpmmMeasurement};
use super::options::{SpmmElement, SpmmOptions, SpmmTuning};
use super::plan::search::MAX_PREDICTED;
use crate::csr::DeviceCsr;
use crate::device::{Device, DeviceBuffer, DeviceError};
use crate::operand::{OperandError, buffer_len, elements};
use std::time::Duration;
use warprow_kernels::spmm::{ItemKind, SpmmKernel};

/// Candidates within this multiple of the fastest one's time are timed with other sizes of tasks, two at most.
const MAX_RATIO_FOR_SIZES: f64 = 1.15;

/// Maximum number of candidates that are timed with other sizes of tasks.
const MAX_SIZED: usize = 2;

/// The sizes of tasks to try, in steps.
const TASK_SIZES: [u32; 4] = [64, 128, 256, 512];

/// The sizes of joined tasks to try.
const JOINED_SIZES: [u32; 2] = [64, 128];

/// Time of work before the first candidate is timed, as a GPU that idles runs slower at first, and before each further
/// one.
const FIRST_WARM_UP: Duration = Duration::from_millis(5);
const WARM_UP: Duration = Duration::from_micros(200);

/// Samples of a candidate, of which the shortest counts; time of a sample, and maximum number of its runs.
const SAMPLES: u32 = 3;
const SAMPLE_TIME: Duration = Duration::from_micros(200);
const MAX_RUNS: u32 = 50;

/// A candidate with a run of more than this multiple of the fastest one's time is given up.
const MAX_RATIO_OF_RUN: f64 = 1.3;

/// What times the candidates of a plan.
pub(super) trait Clock<E: SpmmElement> {
    /// Whether it times runs on a device.
    fn has_time(&self, device: &Device) -> bool;

    /// The time of a run of a candidate with so many features. One that is clearly slower than `best` may be timed
    /// roughly.
    fn time(
        &mut self,
        plan: &Spmm<E>,
        features: u32,
        best: Option<Duration>,
    ) -> Result<Duration, SpmmError>;
}

/// The device's own clock, and operands for the runs.
#[derive(Debug)]
pub(super) struct DeviceClock<E: SpmmElement> {
    /// X and Y, from the first candidate on.
    operands: Option<[DeviceBuffer<E>; 2]>,
}

impl<E: SpmmElement> Default for DeviceClock<E> {
    fn default() -> Self {
        Self { operands: None }
    }
}

impl<E: SpmmElement> Clock<E> for DeviceClock<E> {
    fn has_time(&self, device: &Device) -> bool {
        !device.is_emulator()
    }

    fn time(
        &mut self,
        plan: &Spmm<E>,
        features: u32,
        best: Option<Duration>,
    ) -> Result<Duration, SpmmError> {
        let device = plan.device();
        let mut warm_up = WARM_UP;
        let [x, y] = match &mut self.operands {
            Some(operands) => operands,
            none => {
                warm_up = FIRST_WARM_UP;
                let zeros = |what, rows: usize| -> Result<DeviceBuffer<E>, SpmmError> {
                    // The plan has fewer than 2^32 rows and columns.
                    let len = buffer_len(what, elements(rows as u32, features))?;
                    Ok(device.zeros(len)?)
                };
                none.insert([
                    zeros("the number of elements of x", plan.cols())?,
                    zeros("the number of elements of y", plan.rows())?,
                ])
            }
        };
        let mut runs = |count: u32| -> Result<Duration, SpmmError> {
            let timer = device.start_timer()?;
            for _ in 0..count {
                plan.run(&*x, features as usize, &mut *y)?;
            }
            // A clock that stands still must not keep the plan here for ever.
            let time = timer.stop()?.unwrap_or_default() / count;
            Ok(time.max(Duration::from_nanos(100)))
        };
        // The first run of a kernel loads it, and makes room for partial sums.
        runs(1)?;
        let (mut warmed_up, mut count, mut last) = (Duration::ZERO, 1, Duration::ZERO);
        while warmed_up < warm_up {
            last = runs(count)?;
            warmed_up += last * count;
            count = runs_for(SAMPLE_TIME, last);
        }
        let limit = best.map(|best| best.mul_f64(MAX_RATIO_OF_RUN));
        if limit.is_some_and(|limit| last > limit) {
            return Ok(last);
        }
        for _ in 0..SAMPLES {
            last = last.min(runs(count)?);
        }
        Ok(last)
    }
}

/// How many runs of that time take a sample's time.
fn runs_for(sample: Duration, each: Duration) -> u32 {
    let runs = sample.as_nanos().div_ceil(each.as_nanos().max(1));
    u32::try_from(runs).map_or(MAX_RUNS, |runs| runs.clamp(1, MAX_RUNS))
}

/// Makes the plan of a matrix in an order of its rows, or in the `other` one: by the candidate that is the fastest, or
/// by the best predicted one in the first order if nothing can be measured.
pub(super) fn measure<E: SpmmElement>(
    stored: &DeviceCsr<E::Sum>,
    matrix: OrderedMatrix,
    other: Option<OrderedMatrix>,
    kernel: Option<SpmmKernel>,
    options: SpmmOptions,
    mut clock: impl Clock<E>,
) -> Result<Spmm<E>, SpmmError> {
    let matrices = [Some(matrix.clone()), other];
    let matrices: Vec<OrderedMatrix> = matrices.into_iter().flatten().collect();
    let found = fastest(stored, &matrices, options, &mut clock);
    // What they hold is free for the plan.
    drop((clock, matrices));
    let reason = match found {
        Ok(Ok(plan)) => return Ok(plan),
        Ok(Err(reason)) => reason,
        Err(error) if is_out_of_memory(&error) => {
            "the memory does not suffice for the candidates with X and Y"
        }
        Err(error) => return Err(error),
    };
    let mut plan = Spmm::build(stored, matrix, kernel, options)?;
    plan.measurements = Measurements::None(reason);
    Ok(plan)
}

fn is_out_of_memory(error: &SpmmError) -> bool {
    let is_memory = |error: &DeviceError| matches!(error, DeviceError::OutOfMemory { .. });
    matches!(error, SpmmError::Operand(OperandError::Device(error)) if is_memory(error))
}

/// The plan by the fastest candidate, or why nothing can be measured.
fn fastest<E: SpmmElement>(
    stored: &DeviceCsr<E::Sum>,
    matrices: &[OrderedMatrix],
    options: SpmmOptions,
    clock: &mut impl Clock<E>,
) -> Result<Result<Spmm<E>, &'static str>, SpmmError> {
    let Some(features @ 1..) = options.features else {
        return Ok(Err("the number of features is unknown"));
    };
    if !clock.has_time(stored.device()) {
        return Ok(Err("the device has no clock"));
    }
    let candidates = candidates(matrices, options.tuning);
    if candidates.len() < 2 {
        return Ok(Err("there are no two candidates"));
    }
    let mut all: Vec<(usize, SpmmMeasurement)> = Vec::new();
    let mut best: Option<(Duration, Spmm<E>)> = None;
    let mut time = |(index, tuning): (usize, SpmmTuning), all: &mut Vec<_>| {
        let OrderedMatrix { search, .. } = &matrices[index];
        let matrix = OrderedMatrix {
            search: search.as_ref().map(|search| search.tuned(tuning)),
            ..matrices[index].clone()
        };
        let plan = Spmm::build(stored, matrix, tuning.kernel, options.tuning(tuning))?;
        let fastest = best.as_ref().map(|(time, _)| *time);
        let time = clock.time(&plan, features, fastest)?;
        all.push((index, SpmmMeasurement { tuning, time }));
        if fastest.is_none_or(|fastest| time < fastest) {
            best = Some((time, plan));
        }
        Ok::<(), SpmmError>(())
    };
    for candidate in candidates {
        time(candidate, &mut all)?;
    }
    all.sort_by_key(|(_, measurement)| measurement.time);
    let limit = all[0].1.time.mul_f64(MAX_RATIO_FOR_SIZES);
    let sized = all.iter().take(MAX_SIZED);
    let sized = sized.filter(|(_, measurement)| measurement.time <= limit);
    let with_sizes = |&(index, measurement): &(usize, SpmmMeasurement)| {
        sizes(measurement.tuning, options.tuning).map(move |tuning| (index, tuning))
    };
    let sized: Vec<_> = sized.flat_map(with_sizes).collect();
    for candidate in sized {
        time(candidate, &mut all)?;
    }
    all.sort_by_key(|(_, measurement)| measurement.time);
    let all = all.into_iter().map(|(_, measurement)| measurement);
    let plan = best.map(|(_, plan)| Spmm {
        measurements: Measurements::Of(all.collect()),
        ..plan
    });
    Ok(plan.ok_or("there are no two candidates"))
}

/// The candidates to time, each with the number of its matrix: the best of each kernel and number of lanes in each
/// order of the rows, the best predicted ones first.
fn candidates(matrices: &[OrderedMatrix], asked_for: SpmmTuning) -> Vec<(usize, SpmmTuning)> {
    let mut all = Vec::new();
    for (index, matrix) in matrices.iter().enumerate() {
        let choices = matrix.search.as_ref();
        let choices = choices.map(|search| search.best_of_each(MAX_PREDICTED));
        for choice in choices.into_iter().flatten() {
            let candidate = choice.candidate;
            let has_tasks = candidate.kernel.items() == ItemKind::Tasks;
            let has_bins = candidate.kernel == SpmmKernel::RowBins;
            let lanes = match candidate.kernel {
                SpmmKernel::Vector | SpmmKernel::InStep => Some(candidate.lanes),
                SpmmKernel::RowGroups => Some(candidate.group),
                _ => None,
            };
            let tuning = SpmmTuning {
                kernel: Some(candidate.kernel),
                order: Some(matrix.rows_in_order.order()),
                lanes,
                column_blocks: has_tasks.then_some(candidate.blocks),
                shared_x: has_bins
                    .then_some(candidate.has_shared_x)
                    .or(asked_for.shared_x),
                ..asked_for
            };
            all.push((choice.prediction.seconds, index, tuning));
        }
    }
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let limit = all.first().map_or(0.0, |(least, ..)| MAX_PREDICTED * least);
    let all = all.into_iter().filter(|(seconds, ..)| *seconds <= limit);
    all.map(|(_, index, tuning)| (index, tuning)).collect()
}

/// A candidate with other sizes of tasks, if it has tasks, and the caller asks for no size.
fn sizes(candidate: SpmmTuning, asked_for: SpmmTuning) -> impl Iterator<Item = SpmmTuning> {
    let has_tasks = (candidate.kernel).is_some_and(|kernel| kernel.items() == ItemKind::Tasks);
    let is_free = has_tasks && asked_for.task_size.is_none() && asked_for.join_tasks.is_none();
    // Sub-warps of 8 lanes never join tasks.
    let joins = candidate.lanes.is_some_and(|lanes| lanes > 8);
    let single = TASK_SIZES.into_iter().map(|size| (size, false));
    let joined = JOINED_SIZES.into_iter().map(|size| (size, true));
    let all = single.chain(joined.filter(move |_| joins));
    let all = all.filter(move |_| is_free);
    all.map(move |(size, join)| candidate.task_size(size).join_tasks(join))
}

#[cfg(test)]
mod tests;
