//! The planner: a row of X, and the tiles in which sub-warps take it.

use super::LANES;
use warprow_kernels::spmm::vector::passes;

/// A row of X, and how a sub-warp takes it.
#[derive(Clone, Copy, Debug)]
pub(in crate::spmm) struct RowOfX {
    /// Its bytes.
    pub(in crate::spmm) bytes: u64,
    /// Those of an element.
    pub(in crate::spmm) element_bytes: u64,
    /// Elements that a load brings a lane.
    pub(in crate::spmm) width: u32,
}

impl RowOfX {
    /// Bytes of the tile of so many lanes.
    pub(super) fn tile(self, lanes: u32) -> u64 {
        let features = u32::try_from(self.bytes / self.element_bytes).unwrap_or(u32::MAX);
        let passes = passes(features, lanes, self.width);
        u64::from(lanes * self.width * passes) * self.element_bytes
    }

    /// The fewest lanes that have all of it, or the most that there are.
    pub(in crate::spmm) fn lanes(self, there_are: &[u32]) -> u32 {
        let enough = |&&lanes: &&u32| self.tile(lanes) >= self.bytes;
        let lanes = there_are.iter().find(enough).or(there_are.last());
        lanes.copied().unwrap_or(LANES)
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
            };
            assert_eq!(row.lanes(&[8, 16, 32]), lanes, "{features}");
        }
    }
}
