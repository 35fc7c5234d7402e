//! Which items a block has: the bins one after the other, each with whole blocks.

use super::BLOCK;
use cuda_std::prelude::*;

/// The rows of a matrix in bins, the longest rows first: items whose groups have 32 lanes, then 16, and so on down to
/// one. The parts of long rows are the first items of all. The plan [makes](crate::plan::row_bins) them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct RowBins {
    /// The number of parts of long rows.
    pub parts: u32,
    /// The items whose groups have 32 lanes: the item after the last one.
    pub end_of_32: u32,
    /// The same for 16 lanes, and so on.
    pub end_of_16: u32,
    /// 8 lanes.
    pub end_of_8: u32,
    /// 4 lanes.
    pub end_of_4: u32,
    /// 2 lanes.
    pub end_of_2: u32,
    /// One lane: the number of items.
    pub end_of_1: u32,
}

/// The bin of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// The binary logarithm of the lanes of a group.
    pub shift: u32,
    /// The item of the block's first group.
    pub first: u32,
    /// The item after the bin's last one.
    pub end: u32,
}

impl Bin {
    /// The lanes of a group.
    #[inline(always)]
    pub fn lanes(self) -> u32 {
        1 << self.shift
    }

    /// The item of a thread of the block.
    #[inline(always)]
    pub fn item(self, thread: u32) -> u32 {
        self.first + (thread >> self.shift)
    }
}

impl RowBins {
    /// For items that are no bins.
    pub const NONE: Self = Self {
        parts: 0,
        end_of_32: 0,
        end_of_16: 0,
        end_of_8: 0,
        end_of_4: 0,
        end_of_2: 0,
        end_of_1: 0,
    };

    /// The bins of items that end at these: with groups of 32 lanes, 16, and so on down to one.
    pub fn new(parts: u32, ends: [u32; 6]) -> Self {
        let [end_of_32, end_of_16, end_of_8, end_of_4, end_of_2, end_of_1] = ends;
        Self {
            parts,
            end_of_32,
            end_of_16,
            end_of_8,
            end_of_4,
            end_of_2,
            end_of_1,
        }
    }

    /// The number of blocks of all bins.
    pub fn blocks(self) -> u32 {
        let ends = [
            self.end_of_32,
            self.end_of_16,
            self.end_of_8,
            self.end_of_4,
            self.end_of_2,
            self.end_of_1,
        ];
        let mut first_item = 0;
        let of_bin = |(index, end): (usize, u32)| {
            let items = end - first_item;
            first_item = end;
            items.div_ceil(BLOCK >> (5 - index))
        };
        // At most 2^30 blocks, since 2^32 items have 32 lanes at most.
        ends.into_iter().enumerate().map(of_bin).sum()
    }

    /// The bin of a block: the last one that begins at the block or before it.
    #[inline(always)]
    pub fn of_block(self, block: u32) -> Bin {
        let (mut first_block, mut first_item) = (0, 0);
        let mut found = Bin::default();
        let mut pass = |shift: u32, end: u32| {
            let items_of_block = BLOCK >> shift;
            if block >= first_block {
                let first = first_item + (block - first_block) * items_of_block;
                found = Bin { shift, first, end };
            }
            first_block += (end - first_item).div_ceil(items_of_block);
            first_item = end;
        };
        // A loop over the bins would put them into local memory.
        pass(5, self.end_of_32);
        pass(4, self.end_of_16);
        pass(3, self.end_of_8);
        pass(2, self.end_of_4);
        pass(1, self.end_of_2);
        pass(0, self.end_of_1);
        found
    }
}
