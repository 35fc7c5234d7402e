//! The products of a row of C in a fixed order: those of one nonzero of A before those of the next.
//!
//! A warp takes one row of B after the other, a lane every 32nd of its columns. A row's columns
//! differ, so no two lanes meet in an accumulator: sums need no atomics, and come out the same in
//! every run.

use crate::products::row_products::{ROW_UNROLL, RowProducts, RowSegment};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

impl<T: Real> RowProducts<'_, T> {
    /// Calls `each(column, A[i, k], B[k, column])` for the products of the row, in the order of the
    /// nonzeros of A. The columns of one nonzero differ, so `each` may read and write an element
    /// that belongs to the column. All lanes see it at the next nonzero.
    ///
    /// # Safety
    ///
    /// `operands` is valid (see [`OperandPatterns`](crate::products::operands::OperandPatterns)),
    /// and `nonzeros` are nonzeros of A. All lanes of the warp call it with the same arguments, and
    /// no other warp shares the row.
    #[inline(always)]
    pub unsafe fn for_each_in_order(&self, mut each: impl FnMut(u32, T, T)) {
        let mask = warp::FULL_MASK;
        let lane = warp::lane_id();
        let (mut k, end) = self.nonzeros;
        // SAFETY: `load` reads below `end` only. All lanes agree on `k`, `end`, `count` and each
        // segment's length, so all of them reach each shuffle.
        unsafe {
            while k < end {
                let mine = self.load::<true>(k + lane, end);
                let count = (end - k).min(WARP_SIZE);
                let mut owner = 0;
                while owner < count {
                    // The first 32 products of `ROW_UNROLL` nonzeros are loaded together.
                    let rows: [RowSegment<T>; ROW_UNROLL] = array::from_fn(|u| {
                        let owner = owner + u as u32;
                        RowSegment {
                            start: warp::shfl_idx(mask, mine.start, owner, WARP_SIZE),
                            len: warp::shfl_idx(mask, mine.len, owner, WARP_SIZE),
                            value: warp::shfl_idx(mask, mine.value, owner, WARP_SIZE),
                        }
                    });
                    let mut queue: [(RowSegment<T>, u32, T); ROW_UNROLL] = array::from_fn(|u| {
                        let (column, factor) = self.factor(&rows[u], lane);
                        (rows[u], column, factor)
                    });
                    for _ in 0..ROW_UNROLL {
                        let (row, mut column, mut factor) = queue[0];
                        let mut p = lane;
                        loop {
                            if column != u32::MAX {
                                each(column, row.value, factor);
                            }
                            p += WARP_SIZE;
                            if p - lane >= row.len {
                                break;
                            }
                            (column, factor) = self.factor(&row, p);
                        }
                        warp::sync_warp(mask);
                        queue = array::from_fn(|u| queue[(u + 1) % ROW_UNROLL]);
                    }
                    owner += ROW_UNROLL as u32;
                }
                k += WARP_SIZE;
            }
        }
    }

    /// Column and value of element `p` of a segment of B; the column is 2^32 - 1 past its end.
    #[inline(always)]
    unsafe fn factor(&self, row: &RowSegment<T>, p: u32) -> (u32, T) {
        if p >= row.len {
            return (u32::MAX, T::ZERO);
        }
        let position = (row.start + p) as usize;
        // SAFETY: `p` is below the segment's length, checked above.
        unsafe {
            (
                self.operands.b.col_idx.load(position),
                self.factors.b.load(position),
            )
        }
    }
}
