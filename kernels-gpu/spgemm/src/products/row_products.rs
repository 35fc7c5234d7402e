//! The products of a row of C, dealt out to the lanes of warps: `A[i, k] * B[k, j]` for all k and
//! j.
//!
//! There are two ways:
//!
//! - *Flattened*, for short rows of B. Each lane loads start and length of one row of B. The prefix
//!   sums of the lengths number the products. Of 32 products, a reduction makes a word with a bit
//!   where a row begins, and counting bits gives the row of each. All 32 lanes have work.
//! - *Row by row*, for rows of B of 64 nonzeros or more on average. The warp takes one row after
//!   the other, neighbouring lanes take neighbouring columns, and nothing is searched.
//!
//! A product reads 4 bytes of column and, with values, a value of B.
//!
//! ```text
//! lengths  3 1 0 4       product  0 1 2 3 4 5 6 7
//! sums     3 4 4 8       row      0 0 0 1 3 3 3 3
//! ```

mod segments;

pub(crate) use segments::RowSegment;

use crate::products::lanes::{inclusive_sum, owner_by_starts};
use crate::products::operands::{Factors, OperandPatterns};
use crate::products::window;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use segments::without_empty_lanes;

/// Rows of B of at least this mean length are taken row by row. A shorter row leaves most lanes of
/// its last load idle.
const ROW_BY_ROW_LENGTH: u32 = 64;

/// Warps that share a row of C go row by row only if each has at least this many nonzeros of A.
const MIN_NONZEROS_PER_WARP: u32 = 4;

/// Flattened, warps share a row of C in two ways. With at least this many nonzeros of A per warp,
/// each warp takes nonzeros of its own; with fewer, all warps share the products of each nonzero.
const MIN_OWN_NONZEROS: u32 = 2 * WARP_SIZE;

/// A row of B with more nonzeros than this is left for all warps of the block together.
const LONG_ROW: u32 = 4096;
/// Maximum number of rows of B that are left for all warps.
const MAX_LONG_ROWS: u32 = 31;

/// Words of the list of such rows: their count, then the nonzero of A of each.
pub const LONG_ROW_LIST_WORDS: u32 = 1 + MAX_LONG_ROWS;

/// Products per lane whose loads are in flight together, flattened.
const FLAT_UNROLL: usize = 2;
/// Products per lane whose loads are in flight together, row by row.
pub(crate) const ROW_UNROLL: usize = 4;

/// A row of A, the warps that share its products, and the columns of B that count.
pub struct RowProducts<'a, T> {
    /// A and B.
    pub operands: &'a OperandPatterns,
    /// Their values; not read where only columns are wanted.
    pub factors: Factors<T>,
    /// The row's nonzeros of A, from the first to before the second position.
    pub nonzeros: (u32, u32),
    /// The number of products of the row.
    pub products: u32,
    /// The number of the calling warp among those that share the row.
    pub warp: u32,
    /// The number of warps that share the row.
    pub warps: u32,
    /// The first and the last column that count; `None` if all do.
    pub window: Option<(u32, u32)>,
    /// [`LONG_ROW_LIST_WORDS`] words of shared memory, the first of them 0, if all warps of the
    /// block are to share very long rows of B. Without it, the warp that meets such a row takes it
    /// alone.
    pub long_rows: Option<Shared<u32>>,
}

impl<'a> RowProducts<'a, f32> {
    /// The products of `row` without values, shared by `warps[1]` warps, of which the caller is
    /// number `warps[0]`.
    ///
    /// # Safety
    ///
    /// `operands` is valid (see [`OperandPatterns`]), and `row` is a row of A.
    #[inline(always)]
    pub unsafe fn columns(
        operands: &'a OperandPatterns,
        row: u32,
        products: u32,
        warps: [u32; 2],
    ) -> Self {
        let [warp, warps] = warps;
        Self {
            operands,
            factors: Factors::new(Global::from_address(0), Global::from_address(0)),
            // SAFETY: `row` is a row of A, by the contract.
            nonzeros: unsafe { operands.a.row(row) },
            products,
            warp,
            warps,
            window: None,
            long_rows: None,
        }
    }
}

impl<T: Real> RowProducts<'_, T> {
    /// Calls `each(column, A[i, k] * B[k, column])` for each product of the lane; without `VALUES`
    /// the product is 0.
    ///
    /// # Safety
    ///
    /// `operands` is valid (see [`OperandPatterns`]), and `nonzeros` are nonzeros of A. All lanes
    /// of the warp call it with the same arguments; with `long_rows` all warps of the block take
    /// part. `each` does not synchronise.
    #[inline(always)]
    pub unsafe fn for_each<const VALUES: bool>(&self, mut each: impl FnMut(u32, T)) {
        // SAFETY: `for_each_with` requires of its caller what this function requires.
        unsafe { self.for_each_with::<VALUES, false>(&mut each) };
    }

    /// As [`for_each`](Self::for_each), but all lanes of the warp call `each` together; a lane
    /// without a product passes column 2^32 - 1.
    ///
    /// # Safety
    ///
    /// As for [`for_each`](Self::for_each), but `each` may synchronise the lanes of the warp.
    #[inline(always)]
    pub unsafe fn for_each_together<const VALUES: bool>(&self, mut each: impl FnMut(u32, T)) {
        // SAFETY: `for_each_with` requires of its caller what this function requires.
        unsafe { self.for_each_with::<VALUES, true>(&mut each) };
    }

    /// Chooses the way: row by row if the rows of B are long, else flattened.
    #[inline(always)]
    unsafe fn for_each_with<const VALUES: bool, const TOGETHER: bool>(
        &self,
        each: &mut impl FnMut(u32, T),
    ) {
        let nonzeros = self.nonzeros.1 - self.nonzeros.0;
        let long = u64::from(self.products) >= u64::from(ROW_BY_ROW_LENGTH) * u64::from(nonzeros)
            && (self.warps == 1 || nonzeros >= MIN_NONZEROS_PER_WARP * self.warps);
        // SAFETY: the three functions require of their caller what this function requires.
        unsafe {
            let defers = if long {
                self.row_by_row::<VALUES, TOGETHER>(each);
                true
            } else {
                self.flattened::<VALUES, TOGETHER>(each)
            };
            if defers {
                self.deferred_rows::<VALUES, TOGETHER>(each);
            }
        }
    }

    /// The products numbered by prefix sums, those of 32 nonzeros of A at a time. Returns
    /// whether it may have deferred long rows.
    #[inline(always)]
    unsafe fn flattened<const VALUES: bool, const TOGETHER: bool>(
        &self,
        each: &mut impl FnMut(u32, T),
    ) -> bool {
        let mask = warp::FULL_MASK;
        let lane = warp::lane_id();
        let (start, end) = self.nonzeros;
        // Which nonzeros of A the warp takes at a time, and which of their products.
        let own = u64::from(end - start) >= u64::from(MIN_OWN_NONZEROS) * u64::from(self.warps);
        let (nonzeros_warp, nonzeros_warps) = if own { (self.warp, self.warps) } else { (0, 1) };
        let (products_warp, products_warps) = if own { (0, 1) } else { (self.warp, self.warps) };
        let stride = WARP_SIZE * products_warps;
        let mut k = start.saturating_add(nonzeros_warp * WARP_SIZE);
        // SAFETY: `load` reads below `end` only; `base + p` is a nonzero of B for `p` below
        // `total`. The lanes of the warp agree on `k`, `end` and `total`, so all of them reach each
        // shuffle.
        unsafe {
            let mut next = self.load::<VALUES>(k.saturating_add(lane), end);
            while k < end {
                let mut mine = next;
                if own {
                    self.defer_long_row(k.saturating_add(lane), &mut mine);
                }
                k = k.saturating_add(WARP_SIZE * nonzeros_warps);
                next = self.load::<VALUES>(k.saturating_add(lane), end);
                mine = without_empty_lanes(mine);
                let sum = inclusive_sum::<WARP_SIZE>(mask, mine.len);
                let number = if mine.len > 0 {
                    sum - mine.len
                } else {
                    u32::MAX
                };
                let total = warp::shfl_idx(mask, sum, WARP_SIZE - 1, WARP_SIZE);
                // Product p of the lane's nonzero is at position `base + p` of B.
                let base = mine.start.wrapping_sub(sum - mine.len);
                let mut first = products_warp * WARP_SIZE;
                while first < total {
                    let loaded: [(u32, T); FLAT_UNROLL] = array::from_fn(|u| {
                        let p = first + u as u32 * stride + lane;
                        if p - lane >= total {
                            return (u32::MAX, T::ZERO);
                        }
                        let owner = owner_by_starts(number, p - lane);
                        let base = warp::shfl_idx(mask, base, owner, WARP_SIZE);
                        let value = if VALUES {
                            warp::shfl_idx(mask, mine.value, owner, WARP_SIZE)
                        } else {
                            T::ZERO
                        };
                        if p < total {
                            self.product::<VALUES>(base.wrapping_add(p), value)
                        } else {
                            (u32::MAX, T::ZERO)
                        }
                    });
                    for_each_loaded::<T, FLAT_UNROLL, true, TOGETHER>(loaded, each);
                    first += FLAT_UNROLL as u32 * stride;
                }
            }
        }
        own
    }

    /// Puts a nonzero of A on the list if its row of B is very long, and takes its products from
    /// the lane. If the list is full, the lane keeps them.
    #[inline(always)]
    unsafe fn defer_long_row(&self, k: u32, nonzero: &mut RowSegment<T>) {
        if let Some(list) = self.long_rows
            && nonzero.len > LONG_ROW
        {
            // SAFETY: `entry` is below `MAX_LONG_ROWS`, and the atomic addition gives each lane its
            // own.
            unsafe {
                let entry = list.atomic_add(0, 1);
                if entry < MAX_LONG_ROWS {
                    list.store(1 + entry as usize, k);
                    nonzero.len = 0;
                }
            }
        }
    }

    /// The products of the listed nonzeros, shared by all warps of the block.
    #[inline(always)]
    unsafe fn deferred_rows<const VALUES: bool, const TOGETHER: bool>(
        &self,
        each: &mut impl FnMut(u32, T),
    ) {
        let Some(list) = self.long_rows else {
            return;
        };
        thread::sync_threads();
        let stride = WARP_SIZE * self.warps;
        // SAFETY: the list holds nonzeros of A, and `p` is below the length of the row of B.
        unsafe {
            for index in 0..list.load(0).min(MAX_LONG_ROWS) {
                let k = list.load(1 + index as usize);
                let row = self.load::<VALUES>(k, self.nonzeros.1);
                let mut first = self.warp * WARP_SIZE;
                while first < row.len {
                    let loaded: [(u32, T); FLAT_UNROLL] = array::from_fn(|u| {
                        let p = first + warp::lane_id() + u as u32 * stride;
                        if p < row.len {
                            self.product::<VALUES>(row.start + p, row.value)
                        } else {
                            (u32::MAX, T::ZERO)
                        }
                    });
                    for_each_loaded::<T, FLAT_UNROLL, true, TOGETHER>(loaded, each);
                    first += FLAT_UNROLL as u32 * stride;
                }
            }
        }
    }

    /// One row of B after the other: the warp takes every `warps`-th nonzero of A. Long rows are
    /// deferred if there is a list.
    #[inline(always)]
    unsafe fn row_by_row<const VALUES: bool, const TOGETHER: bool>(
        &self,
        each: &mut impl FnMut(u32, T),
    ) {
        let mask = warp::FULL_MASK;
        let lane = warp::lane_id();
        let (start, end) = self.nonzeros;
        let mut k = start + self.warp;
        // SAFETY: `load` reads below `end` only; `p` is below the length of the segment. All lanes
        // of the warp agree on `k`, `end` and `len`, so all of them reach each shuffle.
        unsafe {
            while k < end {
                let mut mine = self.load::<VALUES>(k.wrapping_add(lane * self.warps), end);
                self.defer_long_row(k.wrapping_add(lane * self.warps), &mut mine);
                let count = (end - k).div_ceil(self.warps.max(1)).min(WARP_SIZE);
                for owner in 0..count {
                    let start = warp::shfl_idx(mask, mine.start, owner, WARP_SIZE);
                    let len = warp::shfl_idx(mask, mine.len, owner, WARP_SIZE);
                    let value = if VALUES {
                        warp::shfl_idx(mask, mine.value, owner, WARP_SIZE)
                    } else {
                        T::ZERO
                    };
                    let step = ROW_UNROLL as u32 * WARP_SIZE;
                    let whole = len - len % step;
                    let mut p = lane;
                    // All lanes have products here, so none is checked; a quarter of the
                    // instructions is saved.
                    while p < whole {
                        let loaded: [(u32, T); ROW_UNROLL] = array::from_fn(|u| {
                            self.product::<VALUES>(start + p + u as u32 * WARP_SIZE, value)
                        });
                        for_each_loaded::<T, ROW_UNROLL, false, TOGETHER>(loaded, each);
                        p += step;
                    }
                    if p - lane < len {
                        let loaded: [(u32, T); ROW_UNROLL] = array::from_fn(|u| {
                            let p = p + u as u32 * WARP_SIZE;
                            if p < len {
                                self.product::<VALUES>(start + p, value)
                            } else {
                                (u32::MAX, T::ZERO)
                            }
                        });
                        for_each_loaded::<T, ROW_UNROLL, true, TOGETHER>(loaded, each);
                    }
                }
                k = k.saturating_add(WARP_SIZE * self.warps);
            }
        }
    }

    /// Nonzero `k` of A with the part of its row of B that lies in the window; an empty segment
    /// from `end` on.
    #[inline(always)]
    pub(crate) unsafe fn load<const VALUES: bool>(&self, k: u32, end: u32) -> RowSegment<T> {
        if k >= end {
            return RowSegment {
                start: 0,
                len: 0,
                value: T::ZERO,
            };
        }
        // SAFETY: `k` is below `end`, checked above, and columns of A are rows of B.
        unsafe {
            let row = self.operands.a.col_idx.load(k as usize) as usize;
            let [mut start, mut end] = self.operands.extents.load2(4 * row);
            if let Some((first, last)) = self.window {
                // The last column of a matrix is below 2^32 - 1.
                [start, end] =
                    window::lower_bounds(self.operands.b.col_idx, [start, end], [first, last + 1]);
            }
            let value = if VALUES {
                self.factors.a.load(k as usize)
            } else {
                T::ZERO
            };
            RowSegment {
                start,
                len: end - start,
                value,
            }
        }
    }

    /// The column of a nonzero of B, and with `VALUES` its product with `value`.
    #[inline(always)]
    unsafe fn product<const VALUES: bool>(&self, position: u32, value: T) -> (u32, T) {
        // SAFETY: `position` is that of a nonzero of B, by the callers.
        unsafe {
            let column = self.operands.b.col_idx.load(position as usize);
            if VALUES {
                (column, value * self.factors.b.load(position as usize))
            } else {
                (column, T::ZERO)
            }
        }
    }
}

/// Calls `each` for loaded products. With `CHECKED`, column 2^32 - 1 stands for no product, which
/// only `TOGETHER` passes on.
///
/// The products move through `loaded[0]` one by one: an index that is no constant would put the
/// array into local memory.
#[inline(always)]
fn for_each_loaded<T: Real, const N: usize, const CHECKED: bool, const TOGETHER: bool>(
    mut loaded: [(u32, T); N],
    each: &mut impl FnMut(u32, T),
) {
    for _ in 0..N {
        let (column, value) = loaded[0];
        if TOGETHER || !CHECKED || column != u32::MAX {
            each(column, value);
        }
        loaded = array::from_fn(|u| loaded[(u + 1) % N]);
    }
}
