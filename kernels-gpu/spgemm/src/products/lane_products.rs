//! The products of a short row of C, a few per lane, all loaded at once: the input of the kernels
//! that sort.
//!
//! A group of lanes takes a row. Each lane loads one nonzero of A and finds its row of B. Prefix
//! sums number the products, and a lane finds the row of a product by binary search, as in
//! [`row_products`](crate::products::row_products).
//!
//! Column and value of a product lie in two arrays. A short row of B therefore touches two sectors
//! of memory, however few bytes it has. [`pair_nonzeros`] first puts columns and values of 4-byte
//! elements side by side, in one pass over B:
//!
//! ```text
//! col_idx  3 7 | 1 | 2 5 8        pairs  3 u 7 v | 1 w | 2 x 5 y 8 z
//! values   u v | w | x y z
//! ```
//!
//! The pass reads and writes 16 bytes per nonzero of B; it pays if rows of B are used several
//! times.

use crate::products::lanes::{inclusive_sum, owner};
use crate::products::operands::{CsrPattern, Factors, OperandPatterns};
use core::array;
use core::mem::transmute_copy;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// Threads in a block of [`pair_nonzeros`].
const BLOCK: u32 = 256;

/// Nonzeros per thread.
const NONZEROS: u32 = 4;

/// Whether nonzeros with elements of this type are paired: those of 4 bytes.
pub const fn are_paired<T>() -> bool {
    size_of::<T>() == size_of::<u32>()
}

/// The launch of [`pair_nonzeros`].
pub fn launch(nonzeros: u32) -> LaunchConfig {
    LaunchConfig::new(nonzeros.div_ceil(BLOCK * NONZEROS), BLOCK)
}

/// `pairs[2 k] = col_idx[k]`, `pairs[2 k + 1] = values[k]` for each nonzero k of B; a thread takes
/// four. The values are copied as bits. 16 bytes per nonzero.
///
/// # Safety
///
/// `b` is a valid pattern (see [`OperandPatterns`]) of `nonzeros` nonzeros, `values` has one for
/// each, `pairs` has room for two words for each. The launch is [`launch`]'s.
#[kernel(name = "spgemm_pair_nonzeros")]
pub unsafe fn pair_nonzeros(
    b: CsrPattern,
    nonzeros: u32,
    values: Global<f32>,
    pairs: GlobalMut<u32>,
) {
    let first = thread::index_1d() * u64::from(NONZEROS);
    let end = u64::from(nonzeros).min(first + u64::from(NONZEROS));
    // SAFETY: positions are below `nonzeros`, checked; vectors of four begin at multiples of four.
    unsafe {
        if first + u64::from(NONZEROS) == end {
            let at = first as usize;
            let [c0, c1, c2, c3] = b.col_idx.load4(at);
            let [v0, v1, v2, v3] = values.load4(at).map(f32::to_bits);
            pairs.store4(2 * at, [c0, v0, c1, v1]);
            pairs.store4(2 * at + 4, [c2, v2, c3, v3]);
        } else {
            let mut at = first;
            while at < end {
                let k = at as usize;
                let value = values.load(k).to_bits();
                pairs.store2(2 * k, [b.col_idx.load(k), value]);
                at += 1;
            }
        }
    }
}

/// The operands of rows whose products are loaded.
pub struct LaneProducts<'a, T> {
    /// A and B.
    pub operands: &'a OperandPatterns,
    /// Their values; not read without `VALUES`.
    pub factors: Factors<T>,
}

/// A nonzero of A: the row of B that it refers to (2^32 - 1 for no nonzero), and its value.
#[derive(Clone, Copy)]
pub struct RowRef<T> {
    row: u32,
    value: T,
}

/// Start and end of the row of B that a nonzero of A refers to, and the nonzero's value. They stay
/// as loaded: an instruction that computed with them would wait for the load.
#[derive(Clone, Copy)]
pub struct RowRange<T> {
    start: u32,
    end: u32,
    value: T,
}

/// The products of the nonzeros of A that a group of lanes holds, one per lane, numbered by prefix
/// sums.
struct GroupProducts<T> {
    /// The products up to and including those of the lane's nonzero.
    sum: u32,
    /// The products of all lanes.
    total: u32,
    /// What to add to a product's number for its position in B.
    base: u32,
    /// The value of the lane's nonzero.
    value: T,
}

impl<T: Real> LaneProducts<'_, T> {
    /// Loads nonzero `k` of A; none from `end` on.
    ///
    /// # Safety
    ///
    /// `operands` is valid (see [`OperandPatterns`]), and A has at least `end` nonzeros.
    #[inline(always)]
    pub unsafe fn row_ref<const VALUES: bool>(&self, k: u32, end: u32) -> RowRef<T> {
        if k >= end {
            return RowRef {
                row: u32::MAX,
                value: T::ZERO,
            };
        }
        // SAFETY: `k` is below `end`, checked above.
        unsafe {
            RowRef {
                row: self.operands.a.col_idx.load(k as usize),
                value: if VALUES {
                    self.factors.a.load(k as usize)
                } else {
                    T::ZERO
                },
            }
        }
    }

    /// Loads where the row of B starts and ends. It reads the row pointers: they are fewer bytes
    /// than the extents, and all of them stay in the cache.
    ///
    /// # Safety
    ///
    /// `operands` is valid (see [`OperandPatterns`]), and `row_ref` comes from
    /// [`row_ref`](Self::row_ref).
    #[inline(always)]
    pub unsafe fn row_range(&self, row_ref: RowRef<T>) -> RowRange<T> {
        let RowRef { row, value } = row_ref;
        if row == u32::MAX {
            return RowRange {
                start: 0,
                end: 0,
                value,
            };
        }
        // SAFETY: columns of A are rows of B, by the contract.
        let (start, end) = unsafe { self.operands.b.row(row) };
        RowRange { start, end, value }
    }

    /// Calls `put(number, column, [a, b])` for each product of a row of C; without `VALUES` the
    /// factors are 0. Gives the number of products. `nonzeros` are the row's nonzeros of A, start
    /// and end; `range` belongs to the lane's nonzero among the first `LANES`. The loads of `N`
    /// products of a lane are in flight together.
    ///
    /// # Safety
    ///
    /// `operands` is valid (see [`OperandPatterns`]). All lanes of the warp call it, those of a
    /// group of `LANES` with the same row. `put` does not synchronise.
    #[inline(always)]
    pub unsafe fn for_each<const LANES: u32, const N: usize, const VALUES: bool>(
        &self,
        nonzeros: (u32, u32),
        range: RowRange<T>,
        put: impl Fn(u32, u32, [T; 2]),
    ) -> u32 {
        let lane = warp::lane_id() % LANES;
        let step = N as u32 * LANES;
        let (mut k, end) = nonzeros;
        // SAFETY: `row_ref` reads below `end` only, and `load_some` below `total`. The loops end by
        // votes of the whole warp, so all lanes reach each shuffle.
        unsafe {
            let mut products = GroupProducts::of::<LANES>(range);
            let mut before = 0;
            loop {
                let mut first = 0;
                // The whole warp goes on together: a shuffle of all lanes costs the least.
                while warp::any(FULL_MASK, first < products.total) {
                    let some = self.load_some::<LANES, N, VALUES>(&products, first);
                    let _: [(); N] = array::from_fn(|u| {
                        let (column, a, b) = some[u];
                        let p = first + u as u32 * LANES + lane;
                        if p < products.total {
                            put(before + p, column, [a, b]);
                        }
                    });
                    first += step;
                }
                before += products.total;
                k = k.saturating_add(LANES);
                if !warp::any(FULL_MASK, k < end) {
                    return before;
                }
                let row_ref = self.row_ref::<VALUES>(k.saturating_add(lane), end);
                products = GroupProducts::of::<LANES>(self.row_range(row_ref));
            }
        }
    }

    /// Loads `N` products of the lane, `LANES` apart, from number `first` on: column and both
    /// factors.
    #[inline(always)]
    unsafe fn load_some<const LANES: u32, const N: usize, const VALUES: bool>(
        &self,
        products: &GroupProducts<T>,
        first: u32,
    ) -> [(u32, T, T); N] {
        let lane = warp::lane_id() % LANES;
        let positions: [(u32, T); N] = array::from_fn(|u| {
            let p = first + u as u32 * LANES + lane;
            let owner = owner::<LANES>(FULL_MASK, products.sum, p);
            let base = warp::shfl_idx(FULL_MASK, products.base, owner, LANES);
            let a = if VALUES {
                warp::shfl_idx(FULL_MASK, products.value, owner, LANES)
            } else {
                T::ZERO
            };
            (base.wrapping_add(p), a)
        });
        let is_product = |u: usize| first + u as u32 * LANES + lane < products.total;
        // SAFETY: `is_product` holds for each position that is loaded; where nonzeros are paired,
        // `T` has four bytes.
        unsafe {
            if VALUES && const { are_paired::<T>() } && self.factors.pairs.address() != 0 {
                return array::from_fn(|u| {
                    let (position, a) = positions[u];
                    if !is_product(u) {
                        return (u32::MAX, T::ZERO, T::ZERO);
                    }
                    let [column, b] = self.factors.pairs.load2(2 * position as usize);
                    (column, a, transmute_copy(&b))
                });
            }
            array::from_fn(|u| {
                let (position, a) = positions[u];
                if !is_product(u) {
                    return (u32::MAX, T::ZERO, T::ZERO);
                }
                let b = if VALUES {
                    self.factors.b.load(position as usize)
                } else {
                    T::ZERO
                };
                (self.operands.b.col_idx.load(position as usize), a, b)
            })
        }
    }
}

impl<T: Real> GroupProducts<T> {
    /// Numbers the products of the group's nonzeros. All lanes of the warp take part.
    #[inline(always)]
    fn of<const LANES: u32>(range: RowRange<T>) -> Self {
        let RowRange { start, end, value } = range;
        let len = end - start;
        let sum = inclusive_sum::<LANES>(FULL_MASK, len);
        Self {
            sum,
            total: warp::shfl_idx(FULL_MASK, sum, LANES - 1, LANES),
            base: start.wrapping_sub(sum - len),
            value,
        }
    }
}

const _: () = assert!(NONZEROS == 4);
