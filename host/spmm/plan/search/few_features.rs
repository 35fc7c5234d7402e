//! The kernels for few features: `narrow`, and `row_groups` where rows have similar lengths.

use super::{Search, faster};
use crate::spmm::plan::cost_model::candidate::{Candidate, FeatureRow};
use crate::spmm::plan::statistics::Statistics;
use warprow_kernels::spmm::SpmmKernel;

/// Lanes for a nonzero up to which the kernel for few features is the best, or nearly: a warp takes 128 nonzeros at a
/// time, or more.
pub(super) const NARROW_LANES: u32 = 2;

/// The same for small matrices with rows that other kernels split.
const NARROW_LANES_IF_SMALL: u32 = 4;

/// Nonzeros of the largest small matrix. With fewer, a warp has one or two tasks, and the model predicts `vector` too
/// fast.
pub(super) const LARGEST_SMALL: u32 = 1_000_000;

/// Maximum number of features with which plans consider `row_groups`. With more, on the matrices that the model was
/// fitted to, it gains 6 % at most, and loses up to 26 %.
const MAX_FEATURES_OF_GROUPS: u32 = 16;

/// The same for small matrices.
const MAX_FEATURES_OF_GROUPS_IF_SMALL: u32 = 32;

/// Features up to which the model compares `narrow` with more lanes on larger matrices. With 16 features of f32 it
/// took `narrow` where `vector` is faster.
pub(super) const MAX_FEATURES_OF_COMPARISON: u32 = 8;

/// Nonzeros of a row that `vector` splits on a small matrix.
const SPLIT_ROW: u32 = 128;

/// Whether `narrow` is taken rather than `vector` and `in_step`: always, never, or, with `None`, if the model says so.
/// The model does not know how well their tasks balance long rows.
pub(super) fn is_narrow_best(a: &Statistics, narrow: &Candidate) -> Option<bool> {
    if narrow.lanes <= NARROW_LANES {
        return Some(true);
    }
    if a.nonzeros <= LARGEST_SMALL {
        let splits_rows = a.longest_row > SPLIT_ROW;
        return Some(splits_rows && narrow.lanes <= NARROW_LANES_IF_SMALL);
    }
    (narrow.row.features() > MAX_FEATURES_OF_COMPARISON).then_some(false)
}

/// Whether `row_groups` is considered for so many features.
fn may_have_groups(a: &Statistics, features: u32) -> bool {
    let most = match a.nonzeros <= LARGEST_SMALL {
        true => MAX_FEATURES_OF_GROUPS_IF_SMALL,
        false => MAX_FEATURES_OF_GROUPS,
    };
    features <= most
}

impl Search {
    /// `row_groups`, with the numbers of lanes that the caller leaves.
    pub(super) fn row_groups(&self) -> impl Iterator<Item = Candidate> {
        let is_left = match self.kernel {
            Some(kernel) => kernel == SpmmKernel::RowGroups,
            // The kernel of a plan for any number of features is one for many.
            None => {
                let is_considered = may_have_groups(&self.statistics, self.row.features());
                is_considered && !self.asks_for_tasks && self.is_sum && self.knows_features
            }
        };
        let lanes = self.lanes.filter(|_| self.kernel.is_some());
        let group = lanes.map(|lanes| self.row.group(lanes));
        let groups = self.row.row_groups();
        groups.filter(move |groups| is_left && group.is_none_or(|group| groups.group == group))
    }

    /// The kernel for few features that is better for a run with a row of X than another candidate; `None` if none is.
    pub fn for_few_features(&self, row: FeatureRow, other: &Candidate) -> Option<SpmmKernel> {
        let seconds = |candidate: &Candidate| self.predict(candidate).seconds;
        let narrow = row.narrow();
        let is_best = narrow.map(|narrow| is_narrow_best(&self.statistics, &narrow));
        let mut best = match is_best {
            Some(Some(true)) => None,
            _ => Some((seconds(other), None)),
        };
        let narrow = narrow.filter(|_| is_best != Some(Some(false)));
        let may_have_groups = may_have_groups(&self.statistics, row.features());
        let groups = row.row_groups().filter(|_| may_have_groups && self.is_sum);
        for candidate in narrow.into_iter().chain(groups) {
            let found = seconds(&candidate);
            if best.is_none_or(|(least, _)| found < least) {
                best = Some((found, Some(candidate.kernel)));
            }
        }
        best.and_then(|(_, kernel)| kernel)
            .map(|kernel| match kernel {
                // It wants other items than a plan for any number of features has.
                SpmmKernel::Spmv => SpmmKernel::Narrow,
                kernel => kernel,
            })
    }

    /// The lanes of a row in a run by `row_groups`; `None` for one feature, more than 64, or several tiles.
    pub fn group(&self, row: FeatureRow) -> Option<u32> {
        let all = row.row_groups();
        let all = all.map(|candidate| self.choice(&self.statistics, candidate));
        all.reduce(faster).map(|best| best.candidate.group)
    }
}
