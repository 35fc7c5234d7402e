//! The products of a row of C, those of a nonzero of A after those of the one before.

use crate::products::walk::{Nonzero, ROW_UNROLL, Walk};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

impl<T: Real> Walk<'_, T> {
    /// Calls `each(column, A[i, k], B[k, column])` for the products of the row, those of a nonzero of A together and before
    /// those of the next. The columns of a nonzero differ, so `each` may read and write an element of the team's that
    /// belongs to the column; for the next nonzero all lanes see it.
    ///
    /// # Safety
    ///
    /// The operands are what they say. All lanes of a warp call it with the same arguments, and share no row with another.
    #[inline(always)]
    pub unsafe fn each_in_order(&self, mut each: impl FnMut(u32, T, T)) {
        let mask = warp::FULL_MASK;
        let lane = warp::lane_id();
        let (mut k, end) = self.nonzeros;
        // SAFETY: nonzeros of the row; all lanes of the warp take part in its shuffles.
        unsafe {
            while k < end {
                let mine = self.load::<true>(k + lane, end);
                let count = (end - k).min(WARP_SIZE);
                let mut owner = 0;
                while owner < count {
                    // The first 32 products of some nonzeros are loaded together.
                    let rows: [Nonzero<T>; ROW_UNROLL] = array::from_fn(|u| {
                        let owner = owner + u as u32;
                        Nonzero {
                            start: warp::shfl_idx(mask, mine.start, owner, WARP_SIZE),
                            len: warp::shfl_idx(mask, mine.len, owner, WARP_SIZE),
                            value: warp::shfl_idx(mask, mine.value, owner, WARP_SIZE),
                        }
                    });
                    let mut queue: [(Nonzero<T>, u32, T); ROW_UNROLL] = array::from_fn(|u| {
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

    /// Column and value of element `p` of a row of B; the column is 2^32 - 1 past its end.
    #[inline(always)]
    unsafe fn factor(&self, row: &Nonzero<T>, p: u32) -> (u32, T) {
        if p >= row.len {
            return (u32::MAX, T::ZERO);
        }
        let position = (row.start + p) as usize;
        // SAFETY: a nonzero of B.
        unsafe {
            (
                self.operands.b.col_idx.load(position),
                self.factors.b.load(position),
            )
        }
    }
}
