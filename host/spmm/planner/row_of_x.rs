//! The planner: a row of X, and the tiles in which sub-warps take it.

use super::{LANES, LINE};
use crate::spmm::{SpmmElement, row_bytes};
use warprow_kernels::spmm::Reduction;
use warprow_kernels::spmm::product::vector;
use warprow_kernels::spmm::product::vector::passes;

/// A row of X, and how a sub-warp takes it.
#[derive(Clone, Copy, Debug)]
pub(in crate::spmm) struct RowOfX {
    /// Its bytes.
    pub(super) bytes: u64,
    /// Those of an element.
    pub(super) element_bytes: u64,
    /// Elements that a load brings a lane.
    pub(super) width: u32,
    /// The numbers of lanes that sub-warps may have for it, the fewest first.
    pub(super) there_are: &'static [u32],
}

impl RowOfX {
    /// A row of f32 that is one cache line.
    pub(super) const LINE: Self = Self {
        bytes: LINE as u64,
        element_bytes: 4,
        width: 4,
        there_are: &[LANES],
    };

    /// A row of so many features, for that reduction of a row's products.
    pub(in crate::spmm) fn of<E: SpmmElement>(features: u32, reduction: Reduction) -> Self {
        Self {
            bytes: row_bytes::<E>(features),
            element_bytes: size_of::<E>() as u64,
            width: vector::width::<E>(features, reduction),
            there_are: vector::lanes::<E>(features, reduction),
        }
    }

    /// Whether it is of whole cache lines.
    pub(super) fn has_whole_lines(self) -> bool {
        self.bytes.is_multiple_of(Self::LINE.bytes)
    }

    /// Bytes of the tile of so many lanes.
    pub(super) fn tile(self, lanes: u32) -> u64 {
        let features = u32::try_from(self.bytes / self.element_bytes).unwrap_or(u32::MAX);
        let passes = passes(features, lanes, self.width);
        u64::from(lanes * self.width * passes) * self.element_bytes
    }

    /// The fewest lanes that have all of it, or the most that there are.
    pub(in crate::spmm) fn lanes(self) -> u32 {
        let enough = |&&lanes: &&u32| self.tile(lanes) >= self.bytes;
        let lanes = self.there_are.iter().find(enough);
        lanes.or(self.there_are.last()).copied().unwrap_or(LANES)
    }

    /// The most lanes of those that there are, but no more than that many; or the fewest.
    pub(in crate::spmm) fn at_most(self, lanes: u32) -> Option<u32> {
        let fewer = self.there_are.iter().rev().find(|&&there| there <= lanes);
        fewer.or(self.there_are.first()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_elements_take_the_fewest_lanes_that_have_all_of_them() {
        for (features, lanes) in [(15, 8), (31, 16), (33, 16), (47, 16), (49, 32), (63, 32)] {
            let row = RowOfX {
                bytes: 4 * features,
                element_bytes: 4,
                width: 1,
                there_are: &[8, 16, 32],
            };
            assert_eq!(row.lanes(), lanes, "{features}");
        }
    }
}
