//! The cost model of a plan: it predicts the time of a product from the matrix's [`Statistics`] and the GPU's rates.
//!
//! Each resource has a time of its own: the memory and the L2 cache for the bytes that come from them, the L1 cache,
//! the instruction schedulers, and the resident warps, which wait for one load after the other. The times overlap in
//! part: their generalised mean of the power [`Constants::overlap`] is the prediction, and launches are added.
//!
//! A cache holds rows of X that were loaded lately, and those that neighbouring rows share. More blocks of columns and
//! narrower tiles raise the hit rates. Both add row ends; blocks also read and write Y again, and tiles read A again.
//!
//! `scripts/spmm_plan_fit/model.py` has the same formulas for arrays of measured candidates. Its resident warps and
//! lanes of `in_step`, and the lanes of rows in bins, are those of the kernel that was measured; here they are those of
//! the present kernel. It computes the variation of rows' lengths from the whole matrix; a plan estimates it from a
//! sample. [`constants`] has the fitted numbers. docs/notes/spmm_plan.md says how good the predictions are.

mod bins;
mod bytes;
mod caches;
pub mod candidate;
pub mod constants;
mod gpu;
mod planning;
mod product;
mod resident_warps;
mod tile;
mod warps;

use super::statistics::Statistics;
use crate::device::Device;
use candidate::{Bound, Candidate, Prediction};
use constants::{Constants, FITTED};
use cuda_std::warp::WARP_SIZE;
use gpu::Gpu;
use product::Product;
use warprow_kernels::spmm::SpmmKernel;

/// A cache line.
const LINE: f64 = 128.0;

/// Bytes of a column.
const WORD: f64 = 4.0;

/// With other lanes than the usual ones, the time of `in_step` by the other formulas is multiplied by the usual lanes
/// over these to this power. It was chosen by a few matrices, before the sweeps had other lanes, and is not fitted.
const OTHER_LANES_IN_STEP: f64 = 0.15;

/// With more lanes than the usual ones, [`OTHER_LANES_IN_STEP`] applies only from this mean row on: each lane of a warp
/// holds a nonzero then. From [eight waves](Product::has_few_waves_in_step) on, rows must not be known to differ in
/// length either.
const LANES_IN_STEP_ROW: f64 = WARP_SIZE as f64;

/// Steps of a task, unless all tasks [run at the same time](RESIDENT_TASK). The model does not choose their size.
const STEPS: f64 = 128.0;

/// Where all tasks run at the same time, the part of the cycles of a task of [`STEPS`] steps that a task of any size
/// takes. The others are those of its steps.
const RESIDENT_TASK: f64 = 0.44;

/// Resident warps of a multiprocessor for which `in_step` divided long rows when the formulas were made; now it is 32.
const IN_STEP_WARPS: f64 = 24.0;

/// The costs of products on a GPU.
#[derive(Clone, Copy, Debug)]
pub struct CostModel {
    gpu: Gpu,
    constants: Constants,
}

impl CostModel {
    /// The model for a device, if its rates are known.
    pub fn of(device: &Device) -> Option<Self> {
        Some(Self {
            gpu: Gpu::of(device)?,
            constants: FITTED,
        })
    }

    /// Bytes of shared memory that a block can have.
    pub fn shared_bytes(&self) -> u32 {
        self.gpu.shared_bytes
    }

    /// Whether all warps of `row_bins` are resident at the same time; false for other kernels. The matrix must have
    /// nonzeros.
    pub fn binned_rows_run_at_once(&self, a: &Statistics, candidate: &Candidate) -> bool {
        Product::new(self, a, candidate).binned_rows_run_at_once()
    }

    /// The predicted time of a run.
    pub fn predict(&self, a: &Statistics, candidate: &Candidate) -> Prediction {
        if a.rows == 0 || a.nonzeros == 0 {
            return Prediction {
                seconds: self.gpu.launch_seconds,
                bound: Bound::Launches,
                l2_misses: 0.0,
            };
        }
        let product = Product::new(self, a, candidate);
        let misses = product.misses();
        let longest_row = product.longest_row(&misses);
        let times = [
            (product.memory_seconds(&misses), Bound::Memory),
            (product.l2_seconds(&misses), Bound::L2),
            (product.l1_seconds(), Bound::L1),
            (product.issue_seconds(), Bound::Instructions),
            (product.latency_seconds(), Bound::Latency),
            (longest_row.overlapping, Bound::LongestRow),
        ];
        let overlap = self.constants.overlap;
        let sum: f64 = times.iter().map(|(time, _)| time.powf(overlap)).sum();
        let launches = self.gpu.launch_seconds * product.launches();
        let most = times.into_iter().chain([(launches, Bound::Launches)]);
        let most = most.max_by(|one, other| one.0.total_cmp(&other.0));
        let together = lanes_factor(&product) * sum.powf(1.0 / overlap);
        let together = together + product.copy_seconds();
        Prediction {
            seconds: launches + longest_row.after_others + together,
            bound: most.map_or(Bound::Launches, |(_, bound)| bound),
            l2_misses: misses.l2,
        }
    }
}

/// The factor of the time of `in_step` for other lanes than the usual ones; 1 for other kernels, and at least 1 for
/// short rows and for many uneven ones.
fn lanes_factor(product: &Product<'_>) -> f64 {
    let candidate = product.candidate;
    if !product.has_kernel(SpmmKernel::InStep) {
        return 1.0;
    }
    let share = candidate.row.usual_share_in_step(candidate.lanes);
    let factor = share.powf(OTHER_LANES_IN_STEP);
    // Rows whose lengths nobody has counted are taken for even here.
    let are_even = product.a.variation.is_none() || product.a.has_even_rows();
    let pay = are_even || product.has_few_waves_in_step();
    match pay && product.mean_row >= LANES_IN_STEP_ROW {
        true => factor,
        false => factor.max(1.0),
    }
}

#[cfg(test)]
mod tests;
