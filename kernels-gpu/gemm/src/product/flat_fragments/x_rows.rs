//! Rows of X without gaps in shared memory: the copies, and a lane's elements of them.

use super::layout::Layout;
use crate::product::whole_rows::Walk;
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, Operand};

/// X, as the lanes of a warp copy it.
#[derive(Clone, Copy)]
pub(super) struct XRows<T> {
    pub x: Dense<T>,
    pub layout: Layout,
    pub lane: u32,
}

impl<T: Operand> XRows<T> {
    /// Writes zeros past the end of a stage, where lanes may load before they set elements to zero.
    ///
    /// # Safety
    ///
    /// The stage has room for them, and no thread uses it. All lanes call it.
    #[inline(always)]
    pub unsafe fn clear_end(self, stage: Shared<u32>) {
        let (first, words) = (self.layout.x_elements() / 2, self.layout.x_bytes() / 4);
        const { assert!(Layout::PAST_END_BYTES / 4 <= WARP_SIZE) };
        if first + self.lane < words {
            // SAFETY: the word is in the stage, and no other lane has it.
            unsafe { stage.store((first + self.lane) as usize, 0) };
        }
    }

    /// Begins the copies of a tile's rows from row `first` on to a stage, and writes zeros for rows past the last one.
    /// If all rows are past it, nothing is copied.
    ///
    /// # Safety
    ///
    /// X is valid and aligned to 16 bytes, `first` is a multiple of 16, and no thread uses the stage. All lanes call
    /// it.
    #[inline(always)]
    pub unsafe fn copy(self, first: u64, to: Shared<u32>) {
        let rows = u64::from(self.x.rows);
        if first >= rows {
            return;
        }
        let (depth, tile) = (self.layout.depth, u64::from(self.layout.rows));
        let from = self.x.data.offset(first as usize * self.x.stride as usize);
        if self.x.stride == depth && first + tile <= rows {
            let bytes = 2 * self.layout.x_elements();
            let from = from.cast::<u32>();
            let mut byte = 16 * self.lane;
            while byte < bytes {
                // SAFETY: the rows exist and are one range, which begins at a multiple of 16 bytes, as 16 rows do. They
                // are a multiple of 16 bytes, for which the stage has room.
                unsafe {
                    let from = from.offset_bytes(byte.into());
                    async_copy::copy::<u32, 4>(to.offset_bytes(byte), from);
                }
                byte += 16 * WARP_SIZE;
            }
            return;
        }
        // The cast is exact: there are fewer rows than in a tile, or as many.
        let existing = (rows - first).min(tile) as u32 * depth;
        let to = to.cast::<T>();
        let mut walk = Walk::start(depth, (self.lane, WARP_SIZE));
        let mut i = self.lane;
        while i < self.layout.x_elements() {
            thread::keep_rolled();
            // Four loads are in flight at the same time.
            let mut loaded = [T::narrow(T::Sum::ZERO); 4];
            unroll!(part in 0..4 {
                if i + part as u32 * WARP_SIZE < existing {
                    let place = walk.row as usize * self.x.stride as usize;
                    // SAFETY: the element is of one of the rows that exist.
                    loaded[part] = unsafe { from.load(place + walk.column as usize) };
                }
                walk.next();
            });
            unroll!(part in 0..4 {
                let i = i + part as u32 * WARP_SIZE;
                if i < self.layout.x_elements() {
                    // SAFETY: the stage has room for the element, and no other lane has it.
                    unsafe { to.store(i as usize, loaded[part]) };
                }
            });
            i += 4 * WARP_SIZE;
        }
    }
}

/// Where a lane's elements of 16 rows in a stage are. The lane with g = lane / 4 and t = lane % 4 has elements 4t to
/// 4t + 3 of each step, which is 16 columns, of rows g and g + 8. They are half a strip of
/// [`TensorCoreElement`](crate::TensorCoreElement).
#[derive(Clone, Copy)]
pub(super) struct XStrips {
    /// Bytes from the first row to the word with the lane's first element of row g.
    first: u32,
    /// Words from a row to the eighth row below.
    eight_rows: u32,
    /// Bits of the first word that belong to the element before the lane's first: 0 or 16. They are the same for rows g
    /// and g + 8, and for all steps.
    before: u32,
    /// The last step, and which of the lane's elements there are of the row.
    last_step: u32,
    mask: [u32; 2],
}

impl XStrips {
    /// The places of the lane's elements.
    #[inline(always)]
    pub fn new(layout: Layout, lane: u32) -> Self {
        let depth = layout.depth;
        let element = lane / 4 * depth + 4 * (lane % 4);
        let last_step = layout.steps() - 1;
        let left = depth.saturating_sub(16 * last_step + 4 * (lane % 4));
        let mask = |left: u32| match left {
            0 => 0,
            1 => 0xffff,
            _ => u32::MAX,
        };
        Self {
            first: 4 * (element / 2),
            eight_rows: 4 * depth,
            before: 16 * (element % 2),
            last_step,
            mask: [mask(left), mask(left.saturating_sub(2))],
        }
    }

    /// Whether X has the step.
    #[inline(always)]
    pub fn has(self, step: u32) -> bool {
        step <= self.last_step
    }

    /// The lane's elements in a step of two of the 16 rows that begin at `rows`; zeros past the rows' end.
    ///
    /// # Safety
    ///
    /// The rows and what follows them in the stage are written, and the rows have the step.
    #[inline(always)]
    pub unsafe fn load(self, rows: Shared<u32>, step: u32) -> [[u32; 2]; 2] {
        let low = rows.offset_bytes(self.first + 32 * step);
        let high = low.offset(self.eight_rows as usize);
        // SAFETY: by the contract.
        let mut strips = unsafe { [self.shifted(low), self.shifted(high)] };
        if step == self.last_step {
            strips = strips.map(|[first, second]| [first & self.mask[0], second & self.mask[1]]);
        }
        strips
    }

    /// Four elements that begin in a word, or in the middle of it. Each word is loaded by itself: `mma.sync` wants the
    /// elements of both rows in four neighbouring registers, and a load of two words would fix the order of two.
    ///
    /// # Safety
    ///
    /// The word and the two after it are written.
    #[inline(always)]
    unsafe fn shifted(self, from: Shared<u32>) -> [u32; 2] {
        // SAFETY: by the contract.
        let words = unsafe { [from.load(0), from.load(1), from.load(2)] };
        let pair = |low: u32, high: u32| {
            // The cast keeps the low word.
            ((u64::from(high) << 32 | u64::from(low)) >> self.before) as u32
        };
        [pair(words[0], words[1]), pair(words[1], words[2])]
    }
}
