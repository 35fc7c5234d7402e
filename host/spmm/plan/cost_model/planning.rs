//! The predicted seconds of planning.

use super::CostModel;
use crate::spmm::plan::statistics::Statistics;
use warprow_kernels::spmm::SpmmKernel;

/// Seconds of counting statistics: of the launches with what they wait for, and for each nonzero.
const STATISTICS_SECONDS: [f64; 2] = [1.4e-4, 5e-12];

/// The share of a search's time that is spent after the sort by first columns: 0.6 to 0.9 on an H200.
const CLUSTERS_OF_SEARCH: f64 = 0.7;

/// Seconds of measuring: of warming up the device, and for each candidate beside its runs.
const MEASURING_SECONDS: [f64; 2] = [5e-3, 1.2e-3];

/// Runs of a candidate that is measured, in the mean.
const MEASURED_RUNS: f64 = 3.9;

/// Candidates with other sizes of tasks than the best predicted ones, in the mean: those of the two fastest.
const MEASURED_SIZES: usize = 8;

impl CostModel {
    /// The predicted seconds of counting the statistics of a matrix.
    pub fn statistics_seconds(&self, a: &Statistics) -> f64 {
        let [launches, per_nonzero] = STATISTICS_SECONDS;
        launches + per_nonzero * f64::from(a.nonzeros)
    }

    /// The predicted seconds of timing so many candidates of a matrix, and other sizes of tasks for the two fastest, if
    /// a run takes so many seconds.
    pub fn measuring_seconds(candidates: usize, run: f64) -> f64 {
        let [warm_up, of_candidate] = MEASURING_SECONDS;
        let candidates = (candidates + MEASURED_SIZES) as f64;
        warm_up + candidates * (of_candidate + MEASURED_RUNS * run)
    }

    /// The predicted seconds of the whole search for clusters. A search that stops before takes less, and one that also
    /// counts what rows share by their first column takes a little more.
    pub fn search_seconds(&self, a: &Statistics) -> f64 {
        let [launches, per_row, per_nonzero, if_not_square] = self.constants.search;
        let not_square = if a.rows == a.cols { 0.0 } else { if_not_square };
        launches + per_row * f64::from(a.rows) + (per_nonzero + not_square) * f64::from(a.nonzeros)
    }

    /// The predicted seconds of the search for clusters alone, after rows are sorted by their first columns.
    pub fn clusters_seconds(&self, a: &Statistics) -> f64 {
        CLUSTERS_OF_SEARCH * self.search_seconds(a)
    }

    /// The predicted seconds of making the items of a kernel, more than for the rows of `row_groups`.
    pub fn items_seconds(&self, a: &Statistics, kernel: SpmmKernel) -> f64 {
        let [launches, per_row, per_nonzero] = match kernel {
            SpmmKernel::Vector => self.constants.items_of_vector,
            SpmmKernel::InStep => self.constants.items_of_in_step,
            SpmmKernel::RowBins => self.constants.items_of_row_bins,
            _ => return 0.0,
        };
        launches + per_row * f64::from(a.rows) + per_nonzero * f64::from(a.nonzeros)
    }

    /// The predicted seconds of dividing a matrix into so many blocks of columns.
    pub fn division_seconds(&self, a: &Statistics, blocks: u32) -> f64 {
        if blocks == 1 {
            return 0.0;
        }
        let [launches, per_row, per_nonzero] = self.constants.division;
        launches + per_row * f64::from(a.rows) + per_nonzero * f64::from(a.nonzeros)
    }
}
