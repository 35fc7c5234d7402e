//! The choice of a kernel, lanes and blocks of columns: the candidate with the least predicted time.

mod choice;
mod few_features;
mod orders;

use super::cost_model::CostModel;
use super::cost_model::candidate::{Candidate, FeatureRow, Prediction};
use super::statistics::Statistics;
use crate::csr::DevicePattern;
use crate::spmm::error::SpmmError;
use crate::spmm::options::{SpmmElement, SpmmOptions, SpmmTuning};
pub use choice::Choice;
use choice::faster;
use few_features::may_have_bins;
pub use orders::share_enough_for_clusters;
use std::iter;
use std::sync::OnceLock;
use warprow_kernels::spmm::{EpilogueKind, Reduction, SpmmKernel};

/// Runs that a plan is made for, if the caller does not say how many.
const DEFAULT_RUNS: u32 = 20;

/// The same of a plan that times candidates, which takes the time of a hundred runs.
const DEFAULT_RUNS_IF_MEASURED: u32 = 1000;

/// The part of a run's time that choices by the statistics gain in the mean over choices without them: in the sweeps,
/// 4 to 9 %.
const GAIN_OF_STATISTICS: f64 = 0.05;

/// The part of a run's time that timing candidates gains in the mean over predicting them.
const GAIN_OF_MEASURING: f64 = 0.02;

/// Candidates with more than this multiple of the least predicted time are not timed.
pub const MAX_PREDICTED: f64 = 2.0;

/// Runs that a plan is made for.
fn expected_runs(options: SpmmOptions) -> u32 {
    options.runs.unwrap_or(match options.measure {
        Some(true) => DEFAULT_RUNS_IF_MEASURED,
        _ => DEFAULT_RUNS,
    })
}

/// Features that a plan is made for, if their number is unknown.
pub const TYPICAL_FEATURES: u32 = 64;

/// Minimum mean number of nonzeros that a row has in a block of columns. With fewer, nothing was measured.
const MIN_NONZEROS_IN_BLOCK: f64 = 5.0;

/// Maximum number of blocks of columns.
const MAX_BLOCKS: u32 = 16;

/// What a plan may choose, and what it predicts the times from.
#[derive(Clone, Debug)]
pub struct Search {
    model: CostModel,
    /// The statistics of the matrix in its order of rows.
    statistics: Statistics,
    /// The best candidate, once somebody has asked for it. Code that changes a field has to empty it.
    chosen: OnceLock<Choice>,
    /// The kernel, if the caller has asked for one.
    kernel: Option<SpmmKernel>,
    /// The lanes for the number of features of the search, if somebody has asked for them or they are measured.
    lanes: Option<u32>,
    /// The lanes for other numbers of features, if the caller has asked for them.
    lanes_of_others: Option<u32>,
    /// Whether X is to be in shared memory for the number of features of the search, if somebody has asked for it or it
    /// is measured.
    shared_x: Option<bool>,
    /// The same for other numbers of features, if the caller has asked for it.
    shared_x_of_others: Option<bool>,
    blocks: Option<u32>,
    may_have_blocks: bool,
    is_sum: bool,
    knows_features: bool,
    /// Whether the caller asks for something that only kernels on tasks have.
    asks_for_tasks: bool,
    /// Whether the caller asks for a size of tasks, without a kernel.
    asks_for_size: bool,
    runs: f64,
    /// Whether the caller has said how many runs there are: then they have to repay the items of a kernel.
    knows_runs: bool,
    /// The row of X that is planned for, where the rows of A are in the caller's order, and in another.
    row: FeatureRow,
    row_in_any_order: FeatureRow,
}

/// Whether the caller asks for something that only kernels on tasks have.
pub fn asks_for_tasks(tuning: SpmmTuning) -> bool {
    tuning.lanes.is_some() || tuning.join_tasks.is_some() || tuning.column_blocks.is_some()
}

impl Search {
    /// For a matrix on a device whose rates are known; `None` for others, and if the caller asks for a kernel that has
    /// no choices.
    pub fn new<E: SpmmElement>(
        a: &DevicePattern,
        kernel: Option<SpmmKernel>,
        options: SpmmOptions,
    ) -> Result<Option<Self>, SpmmError> {
        use SpmmKernel::{InStep, RowBins, RowGroups, Vector};
        let has_choices = |kernel| matches!(kernel, Vector | InStep | RowGroups | RowBins);
        let Some(model) = CostModel::of(a.device()).filter(|_| kernel.is_none_or(has_choices))
        else {
            return Ok(None);
        };
        let assumed = Self::of::<E>(model, Statistics::assume(a), kernel, options);
        if options.runs.is_some() && options.measure != Some(true) && !assumed.statistics_pay() {
            return Ok(Some(assumed));
        }
        Ok(Some(Self {
            statistics: Statistics::measure(a)?,
            chosen: OnceLock::new(),
            ..assumed
        }))
    }

    /// The statistics of the matrix in its order of rows.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Replaces the statistics by those of another order of rows.
    pub fn set_statistics(&mut self, statistics: Statistics) {
        self.statistics = statistics;
        self.chosen = OnceLock::new();
    }

    /// Whether the statistics have been counted.
    pub fn has_counted(&self) -> bool {
        !self.statistics.are_assumed
    }

    /// Whether counting the statistics costs less than all runs gain in the mean by what they tell.
    fn statistics_pay(&self) -> bool {
        let gain = self.runs * self.choose().prediction.seconds * GAIN_OF_STATISTICS;
        gain > self.model.statistics_seconds(&self.statistics)
    }

    /// Whether timing candidates costs less than all runs gain by it in the mean.
    pub fn measuring_pays(&self) -> bool {
        let seconds = self.choose().prediction.seconds;
        let gain = self.runs * seconds * GAIN_OF_MEASURING;
        let pays = |candidates| gain > CostModel::measuring_seconds(candidates, seconds);
        // All candidates are listed only if timing a single one would pay.
        pays(1) && pays(self.best_of_each(MAX_PREDICTED).len())
    }

    fn of<E: SpmmElement>(
        model: CostModel,
        statistics: Statistics,
        kernel: Option<SpmmKernel>,
        options: SpmmOptions,
    ) -> Self {
        let (reduction, tuning) = (options.reduction, options.tuning);
        let is_own_sum = size_of::<E>() == size_of::<E::Sum>();
        let features = options.features.unwrap_or(TYPICAL_FEATURES);
        let feature_row = |epilogue_of_sums| {
            // Means are scaled by the reciprocal of the row's length.
            let epilogue = match reduction {
                Reduction::Mean => EpilogueKind::Scaled,
                _ => epilogue_of_sums,
            };
            FeatureRow::new::<E>(features, reduction, epilogue)
        };
        Self {
            model,
            statistics,
            chosen: OnceLock::new(),
            kernel,
            lanes: tuning.lanes,
            lanes_of_others: tuning.lanes,
            shared_x: tuning.shared_x,
            shared_x_of_others: tuning.shared_x,
            blocks: tuning.column_blocks,
            may_have_blocks: is_own_sum && !reduction.is_extremum(),
            is_sum: !reduction.is_extremum(),
            knows_features: options.features.is_some(),
            asks_for_tasks: asks_for_tasks(tuning),
            asks_for_size: tuning.task_size.is_some(),
            runs: f64::from(expected_runs(options)),
            knows_runs: options.runs.is_some(),
            row: feature_row(EpilogueKind::Plain),
            row_in_any_order: feature_row(EpilogueKind::AnyOrder),
        }
    }

    /// The row of X that is planned for, with the lanes that there are for the order of a matrix's rows.
    fn row_of(&self, a: &Statistics) -> FeatureRow {
        match a.is_ordered {
            true => self.row_in_any_order,
            false => self.row,
        }
    }

    /// The same with the choices of a tuning. Its lanes are for the number of features of the search alone.
    pub fn tuned(&self, tuning: SpmmTuning) -> Self {
        Self {
            chosen: OnceLock::new(),
            kernel: tuning.kernel,
            lanes: tuning.lanes,
            shared_x: tuning.shared_x,
            blocks: tuning.column_blocks,
            asks_for_tasks: asks_for_tasks(tuning),
            asks_for_size: tuning.task_size.is_some(),
            ..self.clone()
        }
    }

    /// All candidates for a matrix with these statistics that the caller leaves.
    fn candidates(&self, a: &Statistics) -> Vec<Choice> {
        let wants = |kernel| match self.kernel {
            Some(requested) => requested == kernel,
            None => !self.asks_for_tasks || kernel == SpmmKernel::Vector,
        };
        if let Some(spmv) = self.spmv() {
            let bins = self.row_bins().filter(|_| self.has_room_for_shared_x());
            let all = iter::once(spmv).chain(bins);
            return all.map(|candidate| self.choice(a, candidate)).collect();
        }
        let mut all: Vec<Candidate> = self.row_groups().chain(self.row_bins()).collect();
        if wants(SpmmKernel::Vector) {
            for blocks in self.blocks(a) {
                let row = self.row_of(a);
                let vector = |lanes| row.vector(lanes, blocks);
                let lanes = Self::lane_counts(self.lanes, row, blocks);
                all.extend(lanes.into_iter().map(vector));
            }
        }
        if wants(SpmmKernel::InStep) && (self.is_sum || self.kernel.is_some()) {
            all.extend(self.row.in_step(self.lanes));
        }
        let choices = all.into_iter();
        choices.map(|candidate| self.choice(a, candidate)).collect()
    }

    /// The numbers of blocks of columns that the caller leaves.
    fn blocks(&self, a: &Statistics) -> Vec<u32> {
        if !self.may_have_blocks {
            return vec![1];
        }
        if let Some(blocks) = self.blocks {
            return vec![blocks.max(1)];
        }
        if a.are_assumed {
            // Whether blocks pay depends on how frequent columns are, which nobody has counted.
            return vec![1];
        }
        let further = (1..=MAX_BLOCKS.ilog2()).map(|log| 1 << log);
        let is_long = |&blocks: &u32| a.mean_row() / f64::from(blocks) >= MIN_NONZEROS_IN_BLOCK;
        iter::once(1).chain(further.take_while(is_long)).collect()
    }

    /// The numbers of lanes that a request leaves.
    fn lane_counts(requested: Option<u32>, row: FeatureRow, blocks: u32) -> Vec<u32> {
        let loads = row.loads(blocks);
        let requested = requested.and_then(|lanes| loads.lanes_at_most(lanes));
        requested.map_or_else(|| loads.lane_counts().collect(), |lanes| vec![lanes])
    }

    /// The best candidate for a matrix with these statistics.
    pub fn best(&self, a: &Statistics) -> Choice {
        let may_be_predicted = |choice: &Choice| match choice.candidate.kernel {
            _ if !self.gains_by_shared_x(a, &choice.candidate, self.shared_x) => false,
            _ if self.kernel.is_some() => true,
            SpmmKernel::RowBins => may_have_bins(a, self.row.features()),
            _ => true,
        };
        let candidates = self.candidates(a).into_iter().filter(may_be_predicted);
        let best = candidates.reduce(faster);
        best.unwrap_or_else(|| self.choice(a, self.row.vector(8, 1)))
    }

    /// The best candidate of each kernel and number of lanes, with X in global and in shared memory, the best of all
    /// first. Those that are predicted to take more than `most` times as long as the best are left out.
    pub fn best_of_each(&self, most: f64) -> Vec<Choice> {
        let mut all = self.candidates(&self.statistics);
        all.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        let mut best: Vec<Choice> = Vec::new();
        for choice in all {
            let kind = |choice: &Choice| {
                let Candidate {
                    kernel,
                    lanes,
                    group,
                    has_shared_x,
                    ..
                } = choice.candidate;
                (kernel, lanes, group, has_shared_x)
            };
            let limit = best
                .first()
                .map_or(f64::INFINITY, |best| most * best.prediction.seconds);
            let is_new = best.iter().all(|other| kind(other) != kind(&choice));
            if is_new && choice.prediction.seconds <= limit {
                best.push(choice);
            }
        }
        best
    }

    /// The best candidate for the matrix.
    pub fn choose(&self) -> Choice {
        *self.chosen.get_or_init(|| self.best(&self.statistics))
    }

    fn choice(&self, a: &Statistics, candidate: Candidate) -> Choice {
        let prediction = self.model.predict(a, &candidate);
        let division = self.model.division_seconds(a, candidate.blocks);
        let items = match self.knows_runs {
            true => self.model.items_seconds(a, candidate.kernel),
            false => 0.0,
        };
        Choice {
            candidate,
            prediction,
            seconds: self.runs * prediction.seconds + division + items,
        }
    }

    /// The candidate of `vector` with the least predicted time in a run with a row of X, on the matrix in so many
    /// blocks of columns.
    pub fn vector(&self, row: FeatureRow, blocks: u32) -> Candidate {
        let lanes = Self::lane_counts(self.requested_lanes(row), row, blocks);
        let all = lanes.into_iter().map(|lanes| row.vector(lanes, blocks));
        self.fastest(all).unwrap_or_else(|| row.vector(8, blocks))
    }

    /// The same of `in_step`.
    pub fn in_step(&self, row: FeatureRow) -> Option<Candidate> {
        self.fastest(row.in_step(self.requested_lanes(row)))
    }

    /// The lanes that are asked for in a run with a row of X.
    fn requested_lanes(&self, row: FeatureRow) -> Option<u32> {
        match row.features() == self.row.features() {
            true => self.lanes,
            false => self.lanes_of_others,
        }
    }

    /// The one with the least predicted time.
    fn fastest(&self, all: impl Iterator<Item = Candidate>) -> Option<Candidate> {
        let choices = all.map(|candidate| self.choice(&self.statistics, candidate));
        choices.reduce(faster).map(|best| best.candidate)
    }

    /// The predicted time of a run.
    pub fn predict(&self, candidate: &Candidate) -> Prediction {
        self.model.predict(&self.statistics, candidate)
    }
}

#[cfg(test)]
mod tests;
