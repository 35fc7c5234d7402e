//! The products of a row of C, dealt out to lanes: `A[i, k] * B[k, j]` for all k and j.
//!
//! Two ways. Where B's rows are short, a lane for each nonzero of A loads where its row of B starts and how long it is; the
//! prefix sums of the lengths number the products, and lane p finds the row of product p by a binary search among the
//! lanes' sums. So 32 lanes work however short the rows are, at five shuffles for 32 products. Where B's rows are long,
//! a warp takes one after the other and the lanes take neighbouring columns, which costs nothing.
//!
//! ```text
//! lengths       3 1 0 4          products  0 1 2 3 4 5 6 7
//! sums          3 4 4 8          row       0 0 0 1 3 3 3 3
//! ```

use crate::products::lanes::{group_mask, inclusive_sum, owner};
use crate::products::operands::{Factors, Operands};
use crate::products::window;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Rows of B of that mean length are taken one after the other. Those of 27 leave most lanes idle and wait for each other's loads: with 24
/// here, on an H200, the numeric phase of a cube's stencil takes 4.94 ms and not 3.65.
const LONG_ROWS: u32 = 64;

/// Nonzeros of A that a warp of several must have for that.
const NONZEROS_A_WARP: u32 = 4;

/// With more nonzeros of A a warp of several takes nonzeros of its own, with fewer all warps share the products of each.
const OWN_NONZEROS: u32 = 2 * WARP_SIZE;

/// Rows of B of more nonzeros are all warps' that share a row, if there are not more than `MOST_LISTED` of them.
const LISTED_ROW: u32 = 4096;
const MOST_LISTED: u32 = 31;

/// Words of the list of a block's nonzeros of A whose rows of B are so long: their number and theirs.
pub const LIST_WORDS: u32 = 1 + MOST_LISTED;

/// Products of a lane whose loads are in flight together, in each of the two ways.
const FLAT_UNROLL: usize = 2;
pub(crate) const ROW_UNROLL: usize = 4;

/// A row of A, the warps that walk it, and the columns of B that count.
pub struct Walk<'a, T> {
    /// A and B.
    pub operands: &'a Operands,
    /// Their values; not read by a walk without values.
    pub factors: Factors<T>,
    /// The row's nonzeros in A, start and end.
    pub nonzeros: (u32, u32),
    /// The products of the row.
    pub products: u32,
    /// The warp's number among those that share the row.
    pub warp: u32,
    /// The warps that share the row.
    pub warps: u32,
    /// The first and the last column that count, if not all do.
    pub window: Option<(u32, u32)>,
    /// Of a block, if a warp is not to have a very long row of B alone: [`LIST_WORDS`] words, the first of them 0.
    pub list: Option<Shared<u32>>,
}

/// A lane's nonzero of A: its row of B and its value.
#[derive(Clone, Copy)]
pub(crate) struct Nonzero<T> {
    pub start: u32,
    pub len: u32,
    pub value: T,
}

impl<'a> Walk<'a, f32> {
    /// The walk of a row's columns, without values.
    ///
    /// # Safety
    ///
    /// The operands are what they say, and `row` is a row of A.
    #[inline(always)]
    pub unsafe fn columns(
        operands: &'a Operands,
        row: u32,
        products: u32,
        warps: [u32; 2],
    ) -> Self {
        let [warp, warps] = warps;
        Self {
            operands,
            factors: Factors::new(Global::from_address(0), Global::from_address(0)),
            // SAFETY: the caller's contract.
            nonzeros: unsafe { operands.a.row(row) },
            products,
            warp,
            warps,
            window: None,
            list: None,
        }
    }
}

impl<T: Real> Walk<'_, T> {
    /// Calls `each(column, A[i, k] * B[k, column])` for the lane's products; with `VALUES` false the product is 0.
    ///
    /// # Safety
    ///
    /// The operands are what they say. All lanes of each group of `LANES` call it with the same arguments; with fewer than
    /// 32 lanes there is one warp, with a list all warps of the block take part. `each` does not synchronise.
    #[inline(always)]
    pub unsafe fn each<const LANES: u32, const VALUES: bool>(&self, mut each: impl FnMut(u32, T)) {
        // SAFETY: the caller's contract.
        unsafe { self.each_with::<LANES, VALUES, false>(&mut each) };
    }

    /// As [`each`](Self::each), and all lanes of a group call `each` together: with column 2^32 - 1 if they have no product.
    ///
    /// # Safety
    ///
    /// As for [`each`](Self::each), but `each` may synchronise the group's lanes.
    #[inline(always)]
    pub unsafe fn each_together<const LANES: u32, const VALUES: bool>(
        &self,
        mut each: impl FnMut(u32, T),
    ) {
        // SAFETY: the caller's contract.
        unsafe { self.each_with::<LANES, VALUES, true>(&mut each) };
    }

    #[inline(always)]
    unsafe fn each_with<const LANES: u32, const VALUES: bool, const TOGETHER: bool>(
        &self,
        each: &mut impl FnMut(u32, T),
    ) {
        let nonzeros = self.nonzeros.1 - self.nonzeros.0;
        let long = u64::from(self.products) >= u64::from(LONG_ROWS) * u64::from(nonzeros)
            && (self.warps == 1 || nonzeros >= NONZEROS_A_WARP * self.warps);
        // SAFETY: the caller's contract.
        unsafe {
            let puts_on_list = if LANES == WARP_SIZE && long {
                self.row_after_row::<VALUES, TOGETHER>(each);
                true
            } else {
                self.flattened::<LANES, VALUES, TOGETHER>(each)
            };
            if puts_on_list {
                self.listed::<VALUES, TOGETHER>(each);
            }
        }
    }

    /// The products numbered through, those of `LANES` nonzeros of A at a time. Says whether some may be on the list.
    #[inline(always)]
    unsafe fn flattened<const LANES: u32, const VALUES: bool, const TOGETHER: bool>(
        &self,
        each: &mut impl FnMut(u32, T),
    ) -> bool {
        let mask = group_mask::<LANES>();
        let lane = warp::lane_id() % LANES;
        let (start, end) = self.nonzeros;
        // Which nonzeros the warp takes at a time, and which of their products.
        let own = u64::from(end - start) >= u64::from(OWN_NONZEROS) * u64::from(self.warps);
        let (nonzeros_warp, nonzeros_warps) = if own { (self.warp, self.warps) } else { (0, 1) };
        let (products_warp, products_warps) = if own { (0, 1) } else { (self.warp, self.warps) };
        let stride = LANES * products_warps;
        let mut k = start.saturating_add(nonzeros_warp * LANES);
        // SAFETY: nonzeros of the row; all lanes of the group take part in its shuffles.
        unsafe {
            let mut next = self.load::<VALUES>(k.saturating_add(lane), end);
            while k < end {
                let mut mine = next;
                if own {
                    self.put_on_list(k.saturating_add(lane), &mut mine);
                }
                k = k.saturating_add(LANES * nonzeros_warps);
                next = self.load::<VALUES>(k.saturating_add(lane), end);
                let sum = inclusive_sum::<LANES>(mask, mine.len);
                let total = warp::shfl_idx(mask, sum, LANES - 1, LANES);
                // Product p of a nonzero is at `base + p` in B.
                let base = mine.start.wrapping_sub(sum - mine.len);
                let mut first = products_warp * LANES;
                while first < total {
                    let loaded: [(u32, T); FLAT_UNROLL] = array::from_fn(|u| {
                        let p = first + u as u32 * stride + lane;
                        if p - lane >= total {
                            return (u32::MAX, T::ZERO);
                        }
                        let owner = owner::<LANES>(mask, sum, p);
                        let base = warp::shfl_idx(mask, base, owner, LANES);
                        let value = if VALUES {
                            warp::shfl_idx(mask, mine.value, owner, LANES)
                        } else {
                            T::ZERO
                        };
                        if p < total {
                            self.product::<VALUES>(base.wrapping_add(p), value)
                        } else {
                            (u32::MAX, T::ZERO)
                        }
                    });
                    each_of::<T, FLAT_UNROLL, true, TOGETHER>(loaded, each);
                    first += FLAT_UNROLL as u32 * stride;
                }
            }
        }
        own
    }

    /// Puts a nonzero of A on the list if its row of B is very long, and takes its products away.
    #[inline(always)]
    unsafe fn put_on_list(&self, k: u32, nonzero: &mut Nonzero<T>) {
        if let Some(list) = self.list
            && nonzero.len > LISTED_ROW
        {
            // SAFETY: places of the list, each of them one lane's.
            unsafe {
                let place = list.atomic_add(0, 1);
                if place < MOST_LISTED {
                    list.store(1 + place as usize, k);
                    nonzero.len = 0;
                }
            }
        }
    }

    /// The products of the nonzeros on the list, shared by all warps.
    #[inline(always)]
    unsafe fn listed<const VALUES: bool, const TOGETHER: bool>(
        &self,
        each: &mut impl FnMut(u32, T),
    ) {
        let Some(list) = self.list else {
            return;
        };
        thread::sync_threads();
        let stride = WARP_SIZE * self.warps;
        // SAFETY: nonzeros of the row.
        unsafe {
            for index in 0..list.load(0).min(MOST_LISTED) {
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
                    each_of::<T, FLAT_UNROLL, true, TOGETHER>(loaded, each);
                    first += FLAT_UNROLL as u32 * stride;
                }
            }
        }
    }

    /// A row of B after the other: the warp takes every `warps`-th nonzero of A. Some may be on the list.
    #[inline(always)]
    unsafe fn row_after_row<const VALUES: bool, const TOGETHER: bool>(
        &self,
        each: &mut impl FnMut(u32, T),
    ) {
        let mask = warp::FULL_MASK;
        let lane = warp::lane_id();
        let (start, end) = self.nonzeros;
        let mut k = start + self.warp;
        // SAFETY: nonzeros of the row; all lanes of the warp take part in its shuffles.
        unsafe {
            while k < end {
                let mut mine = self.load::<VALUES>(k.wrapping_add(lane * self.warps), end);
                self.put_on_list(k.wrapping_add(lane * self.warps), &mut mine);
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
                    // Where all lanes have products, none is checked: a quarter of the instructions.
                    while p < whole {
                        let loaded: [(u32, T); ROW_UNROLL] = array::from_fn(|u| {
                            self.product::<VALUES>(start + p + u as u32 * WARP_SIZE, value)
                        });
                        each_of::<T, ROW_UNROLL, false, TOGETHER>(loaded, each);
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
                        each_of::<T, ROW_UNROLL, true, TOGETHER>(loaded, each);
                    }
                }
                k = k.saturating_add(WARP_SIZE * self.warps);
            }
        }
    }

    /// Nonzero `k` of A if that is before `end`, with the part of its row of B that lies in the window.
    #[inline(always)]
    pub(crate) unsafe fn load<const VALUES: bool>(&self, k: u32, end: u32) -> Nonzero<T> {
        if k >= end {
            return Nonzero {
                start: 0,
                len: 0,
                value: T::ZERO,
            };
        }
        // SAFETY: a nonzero of A, a row of B.
        unsafe {
            let row = self.operands.a.col_idx.load(k as usize) as usize;
            let [mut start, mut end] = self.operands.extents.load2(4 * row);
            if let Some((first, last)) = self.window {
                // The last column of a matrix is below 2^32 - 1.
                [start, end] =
                    window::positions(self.operands.b.col_idx, [start, end], [first, last + 1]);
            }
            let value = if VALUES {
                self.factors.a.load(k as usize)
            } else {
                T::ZERO
            };
            Nonzero {
                start,
                len: end - start,
                value,
            }
        }
    }

    /// Column and product of a nonzero of B.
    #[inline(always)]
    unsafe fn product<const VALUES: bool>(&self, position: u32, value: T) -> (u32, T) {
        // SAFETY: a nonzero of B.
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

/// Calls `each` for products that have been loaded; with `CHECKED` the column is 2^32 - 1 where there is none, for which it
/// is called with `TOGETHER` only. The products move up one by
/// one, as an index that is not known would put them into local memory.
#[inline(always)]
fn each_of<T: Real, const N: usize, const CHECKED: bool, const TOGETHER: bool>(
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
