//! Bins of rows: which items a block has. The bins come one after the other, each with whole blocks.

use cuda_std::prelude::*;

/// Threads in a block of [`row_bins`](crate::product::row_bins).
pub const BLOCK: u32 = 128;

/// The rows of a matrix in bins, the longest rows first: items whose groups have 32 lanes, then 16, and so on down to
/// one. The parts of long rows are the first items of all. The plan [makes](crate::plan::row_bins) them.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, KernelParam)]
pub struct RowBins {
    /// The number of parts of long rows.
    pub parts: u32,
    of_32: BinPlace,
    of_16: BinPlace,
    of_8: BinPlace,
    of_4: BinPlace,
    of_2: BinPlace,
    of_1: BinPlace,
}

/// Where a bin lies among the blocks and the items.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, KernelParam)]
struct BinPlace {
    /// Its first block.
    block: u32,
    /// The item that block 0 would begin with, if all blocks were of this bin, modulo 2^32.
    item_of_block_0: u32,
    /// The item after its last one.
    end: u32,
}

/// The bin of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl BinPlace {
    const NONE: Self = Self {
        block: 0,
        item_of_block_0: 0,
        end: 0,
    };
}

impl RowBins {
    /// For items that are no bins.
    pub const NONE: Self = Self {
        parts: 0,
        of_32: BinPlace::NONE,
        of_16: BinPlace::NONE,
        of_8: BinPlace::NONE,
        of_4: BinPlace::NONE,
        of_2: BinPlace::NONE,
        of_1: BinPlace::NONE,
    };

    /// The bins of items that end at these, with groups of 32 lanes, 16, and so on down to one; and the number of their
    /// blocks.
    pub fn new(parts: u32, ends: [u32; 6]) -> (Self, u32) {
        let (mut block, mut first) = (0_u32, 0);
        let mut shift = 6;
        let [of_32, of_16, of_8, of_4, of_2, of_1] = ends.map(|end| {
            shift -= 1;
            let items_of_block = BLOCK >> shift;
            let bin = BinPlace {
                block,
                item_of_block_0: u32::wrapping_sub(first, block.wrapping_mul(items_of_block)),
                end,
            };
            // At most 2^30 blocks, since 2^32 items have 32 lanes at most.
            block += (end - first).div_ceil(items_of_block);
            first = end;
            bin
        });
        let bins = Self {
            parts,
            of_32,
            of_16,
            of_8,
            of_4,
            of_2,
            of_1,
        };
        (bins, block)
    }

    /// The bin of a block: the last one that begins at the block or before it.
    #[inline(always)]
    pub fn of_block(self, block: u32) -> Bin {
        let (mut shift, mut place) = (5, self.of_32);
        let mut pass = |other_shift: u32, other: BinPlace| {
            if block >= other.block {
                (shift, place) = (other_shift, other);
            }
        };
        // A loop over the bins would put them into local memory.
        pass(4, self.of_16);
        pass(3, self.of_8);
        pass(2, self.of_4);
        pass(1, self.of_2);
        pass(0, self.of_1);
        let items_before = block.wrapping_mul(BLOCK >> shift);
        Bin {
            shift,
            first: place.item_of_block_0.wrapping_add(items_before),
            end: place.end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_all_blocks_have_each_item_once() {
        for ends in [
            [3, 14, 14, 200, 201, 1_000],
            [0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 129],
            [4, 4, 4, 4, 4, 4],
            [5, 13, 29, 61, 125, 253],
        ] {
            let (bins, blocks) = RowBins::new(0, ends);
            let mut next = 0;
            for block in 0..blocks {
                let bin = bins.of_block(block);
                assert_eq!(bin.first, next, "{ends:?}, block {block}");
                assert_eq!(bin.end, ends[5 - bin.shift as usize]);
                next = (bin.item(BLOCK - 1) + 1).min(bin.end);
            }
            assert_eq!(next, ends[5]);
        }
    }

    #[test]
    fn threads_past_the_most_items_have_none() {
        let most = u32::MAX - BLOCK;
        let (bins, blocks) = RowBins::new(0, [1, 1, 1, 1, 1, most]);
        let last = bins.of_block(blocks - 1);
        assert!(last.first < most && last.item(BLOCK - 1) >= most);
    }
}
