//! The times of all candidates of a matrix with a number of features.

use super::Options;
use super::candidates::{Candidate, Setting, candidates};
use crate::harness::measure::{Effort, measure};
use serde::Serialize;
use std::time::Duration;
use warprow::device::DeviceBuffer;
use warprow::spmm::SpmmElement;
use warprow::{DeviceCsr, RowOrder, Spmm, SpmmKernel};

/// Samples of a time, and work before the first one: the device is busy from one candidate to the next.
const SAMPLES: u32 = 5;
const WARM_UP: Duration = Duration::from_millis(2);

/// Candidates that take up to this multiple of the fastest one's time are timed a second time, after all others.
const MAX_OF_SECOND_ROUND: f64 = 1.2;

/// An order of the rows is given up in a case where it takes more than this multiple of the time of the caller's order.
const MAX_OF_OTHER_ORDER: f64 = 1.15;

/// The time of a candidate. Fields without a value are omitted, as the results are large.
#[derive(Serialize)]
pub struct Measured {
    #[serde(flatten)]
    candidate: Candidate,
    /// What ran.
    kernel: &'static str,
    order: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lanes: Option<u32>,
    column_blocks: u32,
    /// The plan in words, of its own choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    plan_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics_ms: Option<f64>,
    /// Making and timing candidates, of a plan that measures, and how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    measuring_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<usize>,
    /// The time that the cost model predicts, and what bounds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_bound: Option<&'static str>,
    /// The median of the samples, and the least one; if there were two rounds, the lesser of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms_min: Option<f64>,
}

/// The times for one number of features.
pub fn case<T: SpmmElement>(
    stored: &DeviceCsr<T::Sum>,
    features: u32,
    x: &DeviceBuffer<T>,
    y: &mut DeviceBuffer<T>,
    runs: &Options,
) -> anyhow::Result<Vec<Measured>> {
    let mean_row = stored.pattern().nnz() as f64 / stored.pattern().rows().max(1) as f64;
    let mut results: Vec<Measured> = Vec::new();
    let mut plans = Vec::new();
    let mut best = None;
    for candidate in candidates(features, mean_row) {
        let is_left_out = match candidate.setting {
            Setting::Own => false,
            Setting::Measured => runs.no_measured,
            Setting::Set => {
                let order = candidate.other_order();
                runs.own_only || order.is_some_and(|order| loses(&results, order))
            }
        };
        if is_left_out {
            continue;
        }
        let options = candidate.options(features);
        let mut plan = Spmm::<T>::plan_device(stored, options)?;
        if candidate.setting != Setting::Set {
            // The first plan has the driver compile kernels.
            drop(plan);
            plan = Spmm::<T>::plan_device(stored, options)?;
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
        // A plan that measures may choose otherwise the next time. Others are made again, as a plan that is kept would
        // let the next ones ask the driver for memory.
        plans.push((candidate.setting == Setting::Measured).then_some(plan));
    }
    let most = best.map(|ms| ms * MAX_OF_SECOND_ROUND);
    for (first, plan) in results.iter_mut().zip(plans).rev() {
        if first.ms > most {
            continue;
        }
        let plan = match plan {
            Some(plan) => plan,
            None => Spmm::plan_device(stored, first.candidate.options(features))?,
        };
        let second = time(&plan, first.candidate, features, x, y, best)?;
        first.ms = least(first.ms, second.ms);
        first.ms_min = least(first.ms_min, second.ms_min);
    }
    Ok(results)
}

/// The lesser of two times, as a disturbed host or GPU mostly makes them longer.
fn least(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).min_by(f64::total_cmp)
}

/// Whether X is to be in shared memory, and does not fit there.
fn lacks_shared_x<T: SpmmElement>(plan: &Spmm<T>, set: Candidate, features: u32) -> bool {
    let has_shared_x = |name: &&str| name.contains("shared_x");
    set.shared_x == Some(true) && !plan.entry_points(features).iter().any(has_shared_x)
}

/// Whether another candidate that the sweep sets has run with the same choices: not every request has an instance.
fn runs_already<T: SpmmElement>(
    results: &[Measured],
    plan: &Spmm<T>,
    set: Candidate,
    features: u32,
) -> bool {
    results.iter().any(|other| {
        other.candidate.setting == Setting::Set
            && (other.candidate.task_size, other.candidate.joined) == (set.task_size, set.joined)
            && other.candidate.shared_x == set.shared_x
            && (other.kernel, other.order)
                == (plan.kernel_for(features).name(), plan.order().name())
            && (other.lanes, other.column_blocks) == (plan.lanes(features), plan.column_blocks())
    })
}

/// Whether `vector` was clearly slower with the rows in this order than in the caller's, with the same lanes and blocks
/// of columns.
fn loses(results: &[Measured], order: RowOrder) -> bool {
    let vector = |result: &&Measured| {
        result.kernel == SpmmKernel::Vector.name() && result.candidate.setting == Setting::Set
    };
    let ordered = results.iter().filter(vector);
    let mut ordered = ordered.filter(|result| result.candidate.other_order() == Some(order));
    ordered.any(|ordered| {
        let given = results.iter().filter(vector).find(|given| {
            given.candidate.other_order().is_none()
                && given.candidate.task_size.is_none()
                && given.candidate.joined.is_none()
                && (given.lanes, given.column_blocks) == (ordered.lanes, ordered.column_blocks)
        });
        let ratio = given.and_then(|given| Some(ordered.ms? / given.ms?));
        ratio.is_some_and(|ratio| ratio > MAX_OF_OTHER_ORDER)
    })
}

fn time<T: SpmmElement>(
    plan: &Spmm<T>,
    candidate: Candidate,
    features: u32,
    x: &DeviceBuffer<T>,
    y: &mut DeviceBuffer<T>,
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
        candidates: times.measuring.map(|_| plan.measurements().len()),
        predicted_ms: prediction.map(|(time, _)| ms(time)),
        predicted_bound: prediction.map(|(_, bound)| bound),
        ms: timing.map(|timing| timing.median),
        ms_min: timing.map(|timing| timing.min),
    })
}
