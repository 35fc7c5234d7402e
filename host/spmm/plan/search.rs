//! The choice of a kernel, lanes and blocks of columns: the candidate with the least predicted time.

use super::cost_model::CostModel;
use super::cost_model::candidate::{Candidate, FeatureRow, Prediction};
use super::locality::Localities;
use super::statistics::Statistics;
use crate::csr::DevicePattern;
use crate::spmm::error::SpmmError;
use crate::spmm::options::{SpmmElement, SpmmOptions};
use warprow_kernels::spmm::{EpilogueKind, SpmmKernel};

/// Runs that a plan is made for, if the caller does not say how many.
pub const DEFAULT_RUNS: u32 = 20;

/// Features that a plan is made for, if their number is unknown.
const TYPICAL_FEATURES: u32 = 64;

/// Minimum mean number of nonzeros that a row has in a block of columns. With fewer, nothing was measured.
const MIN_NONZEROS_IN_BLOCK: f64 = 5.0;

/// Nonzeros of the smallest matrix that the model was fitted to. Launches take most of the time of smaller ones, and
/// what it predicts beside them means little.
const SMALLEST_MEASURED: u32 = 250_000;

/// Maximum number of blocks of columns.
const MAX_BLOCKS: u32 = 16;

/// What clusters of rows may reach: the localities of planted communities.
const BEST_CLUSTERS: Localities = Localities {
    near: 0.8,
    middle: 0.45,
    far: 0.3,
};

/// Whether the model was fitted to matrices of this size.
fn is_measured(a: &Statistics) -> bool {
    a.nonzeros >= SMALLEST_MEASURED
}

/// What a plan may choose, and what it predicts the times from.
#[derive(Clone, Debug)]
pub struct Search {
    model: CostModel,
    /// The statistics of the matrix in its order of rows.
    pub statistics: Statistics,
    /// The kernel, if the caller has asked for one.
    kernel: Option<SpmmKernel>,
    lanes: Option<u32>,
    blocks: Option<u32>,
    may_have_blocks: bool,
    may_run_in_step: bool,
    /// Whether the caller asks for something that only kernels on tasks have.
    asks_for_tasks: bool,
    runs: f64,
    /// The row of X that is planned for.
    row: FeatureRow,
}

/// A candidate, its predicted time, and the predicted seconds of all runs with what the plan costs for it.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The candidate.
    pub candidate: Candidate,
    /// Its time.
    pub prediction: Prediction,
    seconds: f64,
}

impl Search {
    /// For a matrix on a device whose rates are known; `None` for others, and if the caller asks for a kernel that has
    /// no choices.
    pub fn new<E: SpmmElement>(
        a: &DevicePattern,
        kernel: Option<SpmmKernel>,
        options: SpmmOptions,
    ) -> Result<Option<Self>, SpmmError> {
        let has_choices = |kernel| matches!(kernel, SpmmKernel::Vector | SpmmKernel::InStep);
        let Some(model) = CostModel::of(a.device()).filter(|_| kernel.is_none_or(has_choices))
        else {
            return Ok(None);
        };
        let statistics = Statistics::measure(a)?;
        Ok(Some(Self::of::<E>(model, statistics, kernel, options)))
    }

    fn of<E: SpmmElement>(
        model: CostModel,
        statistics: Statistics,
        kernel: Option<SpmmKernel>,
        options: SpmmOptions,
    ) -> Self {
        let SpmmOptions {
            reduction, tuning, ..
        } = options;
        let is_own_sum = size_of::<E>() == size_of::<E::Sum>();
        let features = options.features.unwrap_or(TYPICAL_FEATURES);
        Self {
            model,
            statistics,
            kernel,
            lanes: tuning.lanes,
            blocks: tuning.column_blocks,
            may_have_blocks: is_own_sum && !reduction.is_extremum(),
            may_run_in_step: !reduction.is_extremum(),
            asks_for_tasks: tuning.lanes.is_some()
                || tuning.join_tasks.is_some()
                || tuning.column_blocks.is_some(),
            runs: f64::from(options.runs.unwrap_or(DEFAULT_RUNS)),
            row: FeatureRow::new::<E>(features, reduction, EpilogueKind::Plain),
        }
    }

    /// The best candidate for a matrix with these statistics.
    pub fn best(&self, a: &Statistics) -> Choice {
        let first = self
            .blocks
            .filter(|_| self.may_have_blocks)
            .unwrap_or(1)
            .max(1);
        let lanes = self.best_lanes(a, self.row, first);
        let mut best = self.choice(a, self.row.vector(lanes, first));
        let wants = |kernel| match self.kernel {
            Some(requested) => requested == kernel,
            None => !self.asks_for_tasks,
        };
        if self.kernel == Some(SpmmKernel::InStep) {
            return self.choice(a, self.row.in_step());
        }
        let blocks = (1..=MAX_BLOCKS.ilog2()).map(|log| 1 << log);
        let is_long = |&blocks: &u32| a.mean_row() / f64::from(blocks) >= MIN_NONZEROS_IN_BLOCK;
        let blocks = blocks.filter(|_| self.may_have_blocks && self.blocks.is_none());
        let blocks = blocks.take_while(is_long);
        let in_blocks = blocks.map(|blocks| {
            let lanes = self.best_lanes(a, self.row, blocks);
            self.row.vector(lanes, blocks)
        });
        let in_step = (is_measured(a) && self.may_run_in_step && wants(SpmmKernel::InStep))
            .then(|| self.row.in_step());
        let narrow = self.row.narrow();
        let narrow = narrow.filter(|_| self.kernel.is_none() && !self.asks_for_tasks);
        // The model was not fitted to `spmv`: it took `vector`, which idles seven of eight lanes with one feature.
        let is_spmv = |narrow: &Candidate| narrow.kernel == SpmmKernel::Spmv;
        if let Some(narrow) = narrow.filter(|narrow| is_spmv(narrow) || !is_measured(a)) {
            return self.choice(a, narrow);
        }
        for candidate in in_blocks.chain(in_step).chain(narrow) {
            let other = self.choice(a, candidate);
            if other.seconds < best.seconds {
                best = other;
            }
        }
        best
    }

    /// Whether [`narrow`](Candidate) is better than another candidate. For a matrix below the model's range it is.
    pub fn prefers_narrow(&self, narrow: &Candidate, other: &Candidate) -> bool {
        !is_measured(&self.statistics) || self.predict(narrow).seconds < self.predict(other).seconds
    }

    /// The best candidate for the matrix.
    pub fn choose(&self) -> Choice {
        self.best(&self.statistics)
    }

    fn choice(&self, a: &Statistics, candidate: Candidate) -> Choice {
        let prediction = self.model.predict(a, &candidate);
        let division = self.model.division_seconds(a, candidate.blocks);
        Choice {
            candidate,
            prediction,
            seconds: self.runs * prediction.seconds + division,
        }
    }

    /// The lanes with the least predicted time, of those that the caller leaves.
    fn best_lanes(&self, a: &Statistics, row: FeatureRow, blocks: u32) -> u32 {
        let counts = row.lane_counts(blocks);
        if let Some(lanes) = self.lanes.and_then(|lanes| counts.at_most(lanes)) {
            return lanes;
        }
        let mut best = (f64::INFINITY, 8);
        for lanes in counts.iter() {
            let time = self.model.predict(a, &row.vector(lanes, blocks)).seconds;
            if time < best.0 {
                best = (time, lanes);
            }
        }
        best.1
    }

    /// The lanes of `vector` in a run with a row of X, on the matrix in so many blocks of columns.
    pub fn lanes(&self, row: FeatureRow, blocks: u32) -> u32 {
        self.best_lanes(&self.statistics, row, blocks)
    }

    /// The predicted time of a run.
    pub fn predict(&self, candidate: &Candidate) -> Prediction {
        self.model.predict(&self.statistics, candidate)
    }

    /// Whether the search for an order of the rows costs less than all runs can gain by it.
    pub fn order_may_pay(&self) -> bool {
        let given = &self.statistics.locality;
        let clustered = Localities {
            near: given.near.min(BEST_CLUSTERS.near),
            middle: given.middle.min(BEST_CLUSTERS.middle),
            far: given.far.min(BEST_CLUSTERS.far),
        };
        let gain = self.gain(&self.statistics.ordered(clustered));
        gain > self.model.search_seconds(&self.statistics)
    }

    /// The predicted seconds that all runs gain by another order of the rows.
    pub fn gain(&self, ordered: &Statistics) -> f64 {
        self.choose().seconds - self.best(ordered).seconds
    }
}

#[cfg(test)]
mod tests;
