//! Measuring the products of a row of C: their number, the columns they span, and whether the rows
//! of B are runs of neighbouring columns. A nonzero of A costs its column and the 16-byte extents
//! of one row of B; the columns of B are not read.

use crate::products::operands::OperandPatterns;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Lanes of a group.
pub(crate) const GROUP: u32 = 8;
/// Groups of a warp.
pub(crate) const GROUPS: u32 = WARP_SIZE / GROUP;

/// Nonzeros of A per thread whose loads are in flight together.
const UNROLL: usize = 4;

/// What is measured of a row's products, or of a part of them.
#[derive(Clone, Copy)]
pub(crate) struct RowMeasure {
    /// Their number.
    pub products: u32,
    /// The least column.
    pub first: u32,
    /// The greatest column.
    pub last: u32,
    /// 1 if every row of B is a run of neighbouring columns, else 0.
    pub b_rows_are_runs: u32,
}

impl RowMeasure {
    /// The measure of no products.
    pub const EMPTY: Self = Self {
        products: 0,
        first: u32::MAX,
        last: 0,
        b_rows_are_runs: 1,
    };

    /// Measures the products of every `stride`-th nonzero of A from `k` to before `end`.
    ///
    /// # Safety
    ///
    /// `operands` is valid (see [`OperandPatterns`]), and A has at least `end` nonzeros.
    #[inline(always)]
    pub unsafe fn measure(operands: &OperandPatterns, mut k: u32, end: u32, stride: u32) -> Self {
        let mut found = Self::EMPTY;
        while k < end {
            // A valid A has too few nonzeros for `k` plus four strides to overflow.
            let columns: [u32; UNROLL] = array::from_fn(|u| {
                let k = k + u as u32 * stride;
                if k < end {
                    // SAFETY: `k < end`, checked above, and `end` is at most the number of nonzeros
                    // of A.
                    unsafe { operands.a.col_idx.load(k as usize) }
                } else {
                    u32::MAX
                }
            });
            let extents: [[u32; 4]; UNROLL] = array::from_fn(|u| {
                if columns[u] == u32::MAX {
                    return [0, 0, u32::MAX, 0];
                }
                // SAFETY: columns of A are rows of B, by the contract.
                unsafe { operands.extents.load4(4 * columns[u] as usize) }
            });
            #[allow(
                clippy::needless_range_loop,
                reason = "iterators over the array are not unrolled, and put it into local memory"
            )]
            for u in 0..UNROLL {
                let [start, end, first, last] = extents[u];
                found.products += end - start;
                found.first = found.first.min(first);
                found.last = found.last.max(last);
                if end > start && last - first != end - start - 1 {
                    found.b_rows_are_runs = 0;
                }
            }
            k += UNROLL as u32 * stride;
        }
        found
    }

    /// The measure of all lanes of the group of [`GROUP`] together.
    #[inline(always)]
    pub fn reduce_group(self) -> Self {
        let mut found = self;
        let mut distance = GROUP / 2;
        while distance > 0 {
            let other = found.of_lane(warp::lane_id() ^ distance);
            found = Self {
                products: found.products.wrapping_add(other.products),
                first: found.first.min(other.first),
                last: found.last.max(other.last),
                b_rows_are_runs: found.b_rows_are_runs & other.b_rows_are_runs,
            };
            distance /= 2;
        }
        found
    }

    /// The measure that lane `lane` of the warp holds.
    #[inline(always)]
    pub fn of_lane(self, lane: u32) -> Self {
        let from_lane = |number| warp::shfl_idx(FULL_MASK, number, lane, WARP_SIZE);
        Self {
            products: from_lane(self.products),
            first: from_lane(self.first),
            last: from_lane(self.last),
            b_rows_are_runs: from_lane(self.b_rows_are_runs),
        }
    }

    /// The measure of all lanes of the warp together.
    #[inline(always)]
    pub fn reduce_warp(self) -> Self {
        Self {
            products: warp::reduce_add(FULL_MASK, self.products),
            first: warp::reduce_min(FULL_MASK, self.first),
            last: warp::reduce_max(FULL_MASK, self.last),
            b_rows_are_runs: warp::reduce_and(FULL_MASK, self.b_rows_are_runs),
        }
    }
}
