//! An index of ascending columns by buckets: a column is searched for among those of its bucket.
//!
//! ```text
//! columns              3 5 6 14 18      buckets of four columns from 3 on
//! ranges of positions  0..3 | none | 3..4 | 4..5
//! column 14            bucket 2, position 3 without a search
//! ```
//!
//! Only buckets that have columns are written and read, since every column that is searched for is
//! there.

use crate::products::column_buckets::ColumnBuckets;
use cuda_std::prelude::*;

/// An index of ascending columns: the positions of each bucket's columns.
pub struct BucketIndex {
    /// Where a column belongs.
    pub buckets: ColumnBuckets,
    /// The columns.
    pub columns: Shared<u32>,
    /// For each bucket that has columns, the position of its first one, and 2^16 times one past the
    /// position of its last one.
    pub ranges: Shared<u32>,
}

impl BucketIndex {
    /// Fills the index for the first `count` columns. This is the share of thread `thread` of
    /// `threads`.
    ///
    /// # Safety
    ///
    /// There are `count` columns, fewer than 2^16, of the buckets' span. `ranges` has a word for each
    /// bucket. The threads synchronise before they use the index.
    #[inline(always)]
    pub unsafe fn fill(&self, count: u32, [thread, threads]: [u32; 2]) {
        let ranges = self.ranges.cast::<u16>();
        let mut i = thread;
        while i < count {
            // SAFETY: `i`, and `i - 1` and `i + 1` where they are read, are below `count`. One thread
            // writes each half of a bucket's word: that of its first, and that of its last column.
            unsafe {
                let bucket = self.buckets.of(self.columns.load(i as usize));
                let begins = i == 0 || self.buckets.of(self.columns.load(i as usize - 1)) != bucket;
                if begins {
                    ranges.store(2 * bucket, i as u16);
                }
                let ends =
                    i + 1 == count || self.buckets.of(self.columns.load(i as usize + 1)) != bucket;
                if ends {
                    ranges.store(2 * bucket + 1, (i + 1) as u16);
                }
            }
            i += threads;
        }
    }

    /// The position of a column.
    ///
    /// # Safety
    ///
    /// The index is filled, and `column` is one of its columns.
    #[inline(always)]
    pub unsafe fn position(&self, column: u32) -> usize {
        // SAFETY: the column is one of the index, by the contract, so its bucket has a range, and
        // positions in it are those of columns.
        unsafe {
            let range = self.ranges.load(self.buckets.of(column));
            let mut position = range & 0xffff;
            let mut columns = (range >> 16) - position;
            while columns > 1 {
                let half = columns / 2;
                if self.columns.load((position + half) as usize) <= column {
                    position += half;
                }
                columns -= half;
            }
            position as usize
        }
    }
}
