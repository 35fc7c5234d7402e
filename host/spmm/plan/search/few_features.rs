//! The kernels for few features: `spmv` for one; `row_groups` where rows have similar lengths, and `row_bins`.

use super::Search;
use crate::spmm::plan::cost_model::candidate::{Candidate, FeatureRow};
use crate::spmm::plan::statistics::Statistics;
use warprow_kernels::spmm::SpmmKernel;

/// Nonzeros of the largest small matrix.
const LARGEST_SMALL: u32 = 1_000_000;

/// Maximum number of features with which plans consider `row_groups` for larger matrices, and choose `row_bins` where
/// rows have similar lengths and share columns with their neighbours. With more, the model takes them too often where
/// rows share columns: with 32 features, a product then takes up to 1.7 times as long.
const MAX_FEATURES_IF_LARGE: u32 = 16;

/// From this [variation](Statistics::variation) on, the lengths of rows are not similar. No matrix of the sweeps is
/// between 0.7 and 1. A plan that counts nothing assumes less.
const LEAST_VARIATION: f64 = 0.7;

/// With at least this locality of a thousand rows, neighbouring rows share hardly more columns than random rows do. A
/// plan that counts nothing assumes 1, so its locality does not tell.
const LEAST_LOCALITY_WITHOUT_SHARING: f64 = 0.9;

/// Whether `row_groups` is considered for so many features.
fn may_have_groups(a: &Statistics, features: u32) -> bool {
    features <= MAX_FEATURES_IF_LARGE || is_small(a)
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

    /// `spmv`, if it is left: it is the fastest for one feature.
    pub(super) fn spmv(&self) -> Option<Candidate> {
        self.row.spmv().filter(|_| self.leaves(SpmmKernel::Spmv))
    }

    /// `row_bins`, if it is left.
    pub(super) fn row_bins(&self) -> Option<Candidate> {
        let bins = self.row.row_bins();
        bins.filter(|_| self.leaves(SpmmKernel::RowBins))
    }

    /// `row_groups`, with the numbers of lanes that the caller leaves.
    pub(super) fn row_groups(&self) -> impl Iterator<Item = Candidate> {
        let is_considered =
            self.kernel.is_some() || may_have_groups(&self.statistics, self.row.features());
        let is_left = self.leaves(SpmmKernel::RowGroups) && self.is_sum && is_considered;
        let lanes = self.lanes.filter(|_| self.kernel.is_some());
        let group = lanes.map(|lanes| self.row.group(lanes));
        let groups = self.row.row_groups();
        groups.filter(move |groups| is_left && group.is_none_or(|group| groups.group == group))
    }

    /// The kernel for few features that is better for a run with a row of X than another candidate; `None` if none is.
    pub fn for_few_features(&self, row: FeatureRow, other: &Candidate) -> Option<SpmmKernel> {
        let seconds = |candidate: &Candidate| self.predict(candidate).seconds;
        let may_have_groups = self.is_sum && may_have_groups(&self.statistics, row.features());
        let groups = row.row_groups().filter(|_| may_have_groups);
        let may_have_bins = may_have_bins(&self.statistics, row.features());
        let all = groups.chain(row.row_bins().filter(|_| may_have_bins));
        let best = all.map(|candidate| (seconds(&candidate), candidate.kernel));
        let best = best.min_by(|one, other| one.0.total_cmp(&other.0));
        best.filter(|(least, _)| *least < seconds(other))
            .map(|(_, kernel)| kernel)
    }

    /// The lanes of a row in a run by `row_groups`; `None` for one feature, more than 128, or several tiles.
    pub fn group(&self, row: FeatureRow) -> Option<u32> {
        self.fastest(row.row_groups()).map(|best| best.group)
    }
}
