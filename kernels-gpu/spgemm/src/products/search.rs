//! Accumulators for a known, sorted set of columns. Binary search finds a product's accumulator.
//!
//! ```text
//! columns   2  5  9 17      a product of column 9: search in log2(4) = 2 steps, position 2
//! sums      .  .  +  .
//! ```

use crate::products::operands::OutputPattern;
use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;

/// Columns per thread whose loads are in flight together.
const UNROLL: usize = 4;

/// Columns in ascending order, with an accumulator for each, in shared memory. The threads of a
/// warp or of a block share them.
#[derive(Clone, Copy)]
pub struct SortedAccumulators<T> {
    /// The number of columns there is room for, a power of two.
    pub capacity: u32,
    /// The accumulators.
    pub sums: Shared<T>,
    /// The columns; 2^32 - 1 past the last one.
    pub columns: Shared<u32>,
}

/// The position of a column among `capacity` ascending ones, by binary search.
///
/// # Safety
///
/// `capacity` is a power of two, `columns` holds that many numbers in ascending order, and `column`
/// is one of them.
#[inline(always)]
pub(crate) unsafe fn position(columns: Shared<u32>, capacity: u32, column: u32) -> usize {
    let mut position = 0;
    let mut step = capacity / 2;
    while step > 0 {
        // SAFETY: `position + step <= capacity`, because the steps halve from `capacity / 2` on.
        if unsafe { columns.load((position + step - 1) as usize) } < column {
            position += step;
        }
        step /= 2;
    }
    position as usize
}

impl<T: Real> SortedAccumulators<T> {
    /// Bytes of shared memory for `capacity` columns.
    pub const fn bytes(capacity: u32) -> u32 {
        capacity * (size_of::<T>() as u32 + 4)
    }

    /// The accumulators number `index` in the block's dynamic shared memory.
    #[inline(always)]
    pub fn in_shared_memory(index: u32, capacity: u32) -> Self {
        let base = shared::dynamic_shared_mem::<u8>();
        let sums = base
            .offset((index * Self::bytes(capacity)) as usize)
            .cast::<T>();
        Self {
            capacity,
            sums,
            columns: sums.offset(capacity as usize).cast::<u32>(),
        }
    }

    /// Loads `count` columns from `from` on and sets their sums to zero. They are the columns of
    /// the entries of C from `start` on; where C lacks its columns, they are written there too.
    /// This is the share of thread `thread` of `threads`.
    ///
    /// # Safety
    ///
    /// `from` has `count` columns, at most `capacity`; `start..start + count` are entries of `c`.
    /// The threads synchronise before they use the accumulators.
    #[inline(always)]
    pub unsafe fn load(
        &self,
        c: &OutputPattern,
        from: Global<u32>,
        [start, count]: [u32; 2],
        [thread, threads]: [u32; 2],
    ) {
        let mut i = thread;
        while i < self.capacity {
            // SAFETY: `at` is below `capacity`, checked, and `from` is read below `count` only, by the
            // contract.
            unsafe {
                let some: [u32; UNROLL] = array::from_fn(|u| {
                    let at = i + u as u32 * threads;
                    if at < count {
                        from.load(at as usize)
                    } else {
                        u32::MAX
                    }
                });
                unroll!(u in 0..4 {
                    let at = i + u as u32 * threads;
                    if at < count {
                        c.write_column(start + at, some[u]);
                    }
                    if at < self.capacity {
                        self.columns.store(at as usize, some[u]);
                        self.sums.store(at as usize, T::ZERO);
                    }
                });
            }
            i += UNROLL as u32 * threads;
        }
    }

    /// The position of a column's accumulator.
    ///
    /// # Safety
    ///
    /// The columns have been loaded, and `column` is one of them.
    #[inline(always)]
    pub unsafe fn position(&self, column: u32) -> usize {
        // SAFETY: the columns have been loaded and `column` is one of them, by the contract of this
        // function.
        unsafe { position(self.columns, self.capacity, column) }
    }

    /// Writes the first `count` sums to `to`. This is the share of thread `thread` of `threads`.
    ///
    /// # Safety
    ///
    /// `to` has room for `count` values, and the threads have synchronised since the last addition.
    #[inline(always)]
    pub unsafe fn write(&self, to: GlobalMut<T>, count: u32, thread: u32, threads: u32) {
        let mut i = thread;
        while i < count {
            // SAFETY: `i` is below `count`, which the accumulators and `to` have room for, by the contract.
            unsafe { to.store(i as usize, self.sums.load(i as usize)) };
            i += threads;
        }
    }
}

const _: () = assert!(UNROLL == 4);
