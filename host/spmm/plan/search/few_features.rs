//! The kernels for few features: `spmv` for one; `row_groups` where rows have similar lengths, and `row_bins`.

use super::Search;
use crate::spmm::plan::cost_model::candidate::{Candidate, FeatureRow};
use crate::spmm::plan::statistics::Statistics;
use warprow_kernels::spmm::SpmmKernel;

/// Nonzeros of the largest small matrix.
const LARGEST_SMALL: u32 = 1_000_000;

/// Maximum number of features with which plans choose `row_bins` for larger matrices where rows have similar lengths and
/// share columns with their neighbours, and consider `row_groups` for larger matrices in other types than f64. With more,
/// the model takes them too often where rows share columns: with 32 features, a product then takes up to 1.7 times as
/// long.
const MAX_FEATURES_IF_LARGE: u32 = 16;

/// From this [variation](Statistics::variation) on, the lengths of rows are not similar. No matrix of the sweeps is
/// between 0.7 and 1. A plan that counts nothing assumes less.
const LEAST_VARIATION: f64 = 0.7;

/// With at least this locality of a thousand rows, neighbouring rows share hardly more columns than random rows do. A
/// plan that counts nothing assumes 1, so its locality does not tell.
const LEAST_LOCALITY_WITHOUT_SHARING: f64 = 0.9;

/// The part of the predicted time of `row_bins` that X in shared memory gains at least in plans that do not time
/// candidates.
const LEAST_GAIN_OF_SHARED_X: f64 = 0.07;

/// The mean row from which on such plans have X in shared memory.
const LEAST_ROW_FOR_SHARED_X: f64 = 64.0;

/// The least locality of nearby rows for X in shared memory. With less, nearby rows share columns, as in a band. The
/// columns of a row often lie together then, and the L1 cache loads them faster than the model assumes. The limit does
/// not apply if all rows run at once: latency bounds them then.
const LEAST_LOCALITY_FOR_SHARED_X: f64 = 0.7;

/// Whether `row_groups` is considered for a row of X. In f64 the registers of `vector` and `in_step` leave few warps
/// resident, so `row_groups` is faster more often.
fn may_have_groups(a: &Statistics, row: FeatureRow) -> bool {
    row.features() <= MAX_FEATURES_IF_LARGE || is_small(a) || row.element_bytes() == 8
}

/// Whether a plan that does not time candidates may choose `row_bins` for so many features.
pub(super) fn may_have_bins(a: &Statistics, features: u32) -> bool {
    let shares_no_columns = !a.are_assumed && a.locality.far >= LEAST_LOCALITY_WITHOUT_SHARING;
    let suits_bins = a.variation() >= LEAST_VARIATION || shares_no_columns;
    features <= MAX_FEATURES_IF_LARGE || is_small(a) || suits_bins
}

fn is_small(a: &Statistics) -> bool {
    a.nonzeros <= LARGEST_SMALL
}

impl Search {
    /// Whether the caller's options leave a kernel for few features.
    fn leaves(&self, kernel: SpmmKernel) -> bool {
        match self.kernel {
            Some(requested) => requested == kernel,
            // The kernel of a plan for any number of features is one for many.
            None => {
                // A size is for the kernels on tasks.
                let is_free = !self.asks_for_size || kernel == SpmmKernel::Spmv;
                is_free && !self.asks_for_tasks && self.knows_features
            }
        }
    }

    /// `spmv`, if it is left: for one feature, only `row_bins` may be faster, where X [fits in shared
    /// memory](Self::has_room_for_shared_x).
    pub(super) fn spmv(&self) -> Option<Candidate> {
        self.row.spmv().filter(|_| self.leaves(SpmmKernel::Spmv))
    }

    /// Whether shared memory has room for X. For one feature and a larger X, the model takes `row_bins` too often: on
    /// banded graphs of 30 and 42 million nonzeros it took 1.7 and 2.1 times as long as `spmv`.
    pub(super) fn has_room_for_shared_x(&self) -> bool {
        let (cols, bytes) = (self.statistics.cols, self.model.shared_bytes());
        self.row.row_bins_with_shared_x(cols, bytes).is_some()
    }

    /// `row_bins`, if it is left: with X in global and in shared memory.
    pub(super) fn row_bins(&self) -> impl Iterator<Item = Candidate> {
        let is_left = self.leaves(SpmmKernel::RowBins);
        let all = self.row_bins_with(self.row, self.shared_x);
        all.filter(move |_| is_left)
    }

    /// `row_bins` with a row of X. `asked_for` says whether X is to be in shared memory, where that has room for it.
    fn row_bins_with(
        &self,
        row: FeatureRow,
        asked_for: Option<bool>,
    ) -> impl Iterator<Item = Candidate> {
        let (cols, bytes) = (self.statistics.cols, self.model.shared_bytes());
        let shared = row.row_bins_with_shared_x(cols, bytes);
        let shared = shared.filter(|_| asked_for != Some(false));
        let is_only = asked_for == Some(true) && shared.is_some();
        let global = row.row_bins().filter(|_| !is_only);
        global.into_iter().chain(shared)
    }

    /// False if the candidate has X in shared memory, nobody has asked for it, and the predicted gain is too small.
    pub(super) fn gains_by_shared_x(
        &self,
        a: &Statistics,
        candidate: &Candidate,
        asked_for: Option<bool>,
    ) -> bool {
        if asked_for.is_some() || !candidate.has_shared_x {
            return true;
        }
        let global = Candidate {
            has_shared_x: false,
            ..*candidate
        };
        let seconds = |candidate: &Candidate| self.model.predict(a, candidate).seconds;
        let may_gain = a.mean_row() >= LEAST_ROW_FOR_SHARED_X
            && (a.locality.near >= LEAST_LOCALITY_FOR_SHARED_X
                || self.model.binned_rows_run_at_once(a, candidate));
        may_gain && seconds(candidate) < (1.0 - LEAST_GAIN_OF_SHARED_X) * seconds(&global)
    }

    /// `row_bins` in a run with a row of X; `None` for more than 128 features, or several tiles.
    pub fn row_bins_of_run(&self, row: FeatureRow) -> Option<Candidate> {
        let asked_for = self.requested_shared_x(row);
        let all = self.row_bins_with(row, asked_for);
        all.filter(|candidate| self.gains_by_shared_x(&self.statistics, candidate, asked_for))
            .last()
    }

    /// Whether X is asked to be in shared memory in a run with a row of X.
    pub fn requested_shared_x(&self, row: FeatureRow) -> Option<bool> {
        match row.features() == self.row.features() {
            true => self.shared_x,
            false => self.shared_x_of_others,
        }
    }

    /// `row_groups`, with the numbers of lanes that the caller leaves.
    pub(super) fn row_groups(&self) -> impl Iterator<Item = Candidate> {
        let is_considered = self.kernel.is_some() || may_have_groups(&self.statistics, self.row);
        let is_left = self.leaves(SpmmKernel::RowGroups) && self.is_sum && is_considered;
        let lanes = self.lanes.filter(|_| self.kernel.is_some());
        let group = lanes.map(|lanes| self.row.group(lanes));
        let groups = self.row.row_groups();
        groups.filter(move |groups| is_left && group.is_none_or(|group| groups.group == group))
    }

    /// The kernel for few features that is better for a run with a row of X than another candidate; `None` if none is.
    pub fn for_few_features(&self, row: FeatureRow, other: &Candidate) -> Option<SpmmKernel> {
        let seconds = |candidate: &Candidate| self.predict(candidate).seconds;
        let may_have_groups = self.is_sum && may_have_groups(&self.statistics, row);
        let groups = row.row_groups().filter(|_| may_have_groups);
        let may_have_bins = may_have_bins(&self.statistics, row.features());
        let all = groups.chain(self.row_bins_of_run(row).filter(|_| may_have_bins));
        let best = all.map(|candidate| (seconds(&candidate), candidate.kernel));
        let best = best.min_by(|one, other| one.0.total_cmp(&other.0));
        best.filter(|(least, _)| *least < seconds(other))
            .map(|(_, kernel)| kernel)
    }

    /// The lanes of a row in a run by `row_groups`; `None` for one feature, more than 128, or several tiles of another
    /// type than f64.
    pub fn group(&self, row: FeatureRow) -> Option<u32> {
        self.fastest(row.row_groups()).map(|best| best.group)
    }
}
