//! The planner: a row of X, and the tiles in which sub-warps take it.

use super::{LANES, LINE};
use crate::spmm::{SpmmElement, row_bytes};
use warprow_kernels::spmm::product::vector::{self, LaneCounts, passes};
use warprow_kernels::spmm::{Ending, Reduction};

/// A row of X, and how a sub-warp takes it.
#[derive(Clone, Copy, Debug)]
pub(in crate::spmm) struct RowOfX {
    /// Its bytes.
    pub(super) bytes: u64,
    /// Those of an element.
    pub(super) element_bytes: u64,
    /// Elements that a load brings a lane.
    pub(super) width: u32,
    /// The numbers of lanes that sub-warps may have for it, where A is in one block.
    pub(super) lanes_of_one_block: LaneCounts,
    /// The same, where A is cut into blocks of columns: those of the kernel that adds a block's product to Y. The kernels for
    /// the first block have these too.
    pub(super) lanes_of_blocks: LaneCounts,
}

impl RowOfX {
    /// A row of f32 that is one cache line.
    pub(super) const LINE: Self = Self {
        bytes: LINE as u64,
        element_bytes: 4,
        width: 4,
        lanes_of_one_block: LaneCounts::of(&[LANES]),
        lanes_of_blocks: LaneCounts::of(&[LANES]),
    };

    /// A row of so many features, for that reduction of a row's products and such ends of rows.
    pub(in crate::spmm) fn of<E: SpmmElement>(
        features: u32,
        reduction: Reduction,
        ending: Ending,
    ) -> Self {
        let lanes = |ending| vector::lanes::<E>(features, reduction, ending);
        Self {
            bytes: row_bytes::<E>(features),
            element_bytes: size_of::<E>() as u64,
            width: vector::width::<E>(features, reduction),
            lanes_of_one_block: lanes(ending),
            lanes_of_blocks: lanes(Ending::Added),
        }
    }

    /// Whether it is of whole cache lines.
    pub(super) fn has_whole_lines(self) -> bool {
        self.bytes.is_multiple_of(Self::LINE.bytes)
    }

    /// Bytes of the tile of so many lanes.
    pub(super) fn tile(self, lanes: u32) -> u64 {
        u64::from(lanes * self.width * passes(lanes, self.width)) * self.element_bytes
    }

    /// The numbers of lanes that there are, where A is in so many blocks.
    pub(in crate::spmm) fn there_are(self, blocks: u32) -> LaneCounts {
        if blocks > 1 {
            self.lanes_of_blocks
        } else {
            self.lanes_of_one_block
        }
    }

    /// The fewest of these lanes that have all of it, or the most that there are.
    pub(in crate::spmm) fn lanes(self, there_are: LaneCounts) -> u32 {
        let enough = |&lanes: &u32| self.tile(lanes) >= self.bytes;
        let lanes = there_are.iter().find(enough);
        lanes.or(there_are.iter().last()).unwrap_or(LANES)
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
                ..RowOfX::LINE
            };
            let found = row.lanes(LaneCounts::of(&[8, 16, 32]));
            assert_eq!(found, lanes, "{features}");
        }
    }
}
