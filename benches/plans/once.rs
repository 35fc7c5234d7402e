//! The time of one product of a matrix that is on the device: planning and one run, with everything that they
//! allocate, beside cuSPARSE's preprocessing and one run.

use crate::harness::host_clock::{Runs, measure_whole};
use crate::spmm::cusparse_spmm::{Algorithm, Cusparse, Product};
use crate::spmm::own_matrix::BenchElement;
use serde::Serialize;
use std::time::Duration;
use warprow::device::DeviceBuffer;
use warprow::spmm::Operand;
use warprow::{DeviceCsr, Spmm, SpmmOptions};

/// Samples: the first product of a kernel, which loads it, is not among them.
const RUNS: Runs = Runs {
    warm_ups: 2,
    samples: 9,
    budget: Duration::from_millis(150),
};

/// A way to have one product.
#[derive(Serialize)]
pub struct Once {
    name: &'static str,
    /// The expected runs that the plan is told.
    runs: Option<u32>,
    /// Milliseconds of everything, by the host's clock.
    ms: Option<f64>,
    ms_min: Option<f64>,
    /// The part of counting statistics in the last sample.
    statistics_ms: Option<f64>,
    plan: Option<String>,
}

/// Times a product by plans for one run and for the default number of runs, and by each algorithm of cuSPARSE, which
/// wants a matrix of the type of X.
pub fn measure_all<T: BenchElement>(
    stored: &DeviceCsr<<T as Operand>::Sum>,
    features: u32,
    x: &DeviceBuffer<T>,
    y: &mut DeviceBuffer<T>,
    peer: Option<(&Cusparse, &DeviceCsr<T>)>,
) -> anyhow::Result<Vec<Once>> {
    let device = stored.pattern().device().clone();
    let (rows, cols) = (stored.pattern().rows(), stored.pattern().cols());
    let (x_len, y_len) = (cols * features as usize, rows * features as usize);
    let mut all = Vec::new();
    for runs in [Some(1), None] {
        let mut options = SpmmOptions::new().features(features);
        options.runs = runs;
        let (timing, plan) = measure_whole(&device, RUNS, || {
            let plan = Spmm::<T>::plan_device(stored, options)?;
            plan.run(x.slice(..x_len)?, features as usize, y.slice_mut(..y_len)?)?;
            Ok::<_, warprow::Error>(plan)
        })?;
        let statistics = plan.times().statistics;
        all.push(Once {
            name: "warprow",
            runs,
            ms: timing.map(|timing| timing.median),
            ms_min: timing.map(|timing| timing.min),
            statistics_ms: statistics.map(|time| time.as_secs_f64() * 1e3),
            plan: Some(plan.to_string()),
        });
    }
    let Some((cusparse, stored)) = peer else {
        return Ok(all);
    };
    // A product of cuSPARSE wants buffers of the operands' lengths.
    let x = device.zeros::<T>(x_len)?;
    let mut y = device.zeros::<T>(y_len)?;
    for algorithm in Algorithm::ALL {
        let (timing, ()) = measure_whole(&device, RUNS, || {
            Product::prepare(cusparse, stored, &x, &mut y, features, algorithm)?.run()
        })?;
        all.push(Once {
            name: algorithm.name(),
            runs: None,
            ms: timing.map(|timing| timing.median),
            ms_min: timing.map(|timing| timing.min),
            statistics_ms: None,
            plan: None,
        });
    }
    Ok(all)
}
