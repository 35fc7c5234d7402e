//! The products of a short row of C, a few to each lane, all of them loaded at once: what sorting wants.
//!
//! A product is one place of B, but its column and its value are two, and each is a piece of memory of its own however short
//! the row of B is. So the columns and values of B are first put beside each other, in one pass over B; a row of five
//! nonzeros is then 40 bytes in one piece. Of a uniform matrix of 5 million nonzeros the rows of 17 to 32 products then move
//! 390 MB of an H200's memory and not 540; as they wait more for the latency than for the bytes, that is 232 us and not 250, and
//! the pass takes 22. Elements of 8 bytes stay where they are.

use crate::products::lanes::{inclusive_sum, owner};
use crate::products::operands::{Factors, Operands, Pattern};
use core::array;
use core::mem::transmute_copy;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// Threads in a block of [`pair_nonzeros`].
const BLOCK: u32 = 256;

/// Nonzeros of a thread.
const NONZEROS: u32 = 4;

/// Whether nonzeros of such elements are paired.
pub const fn are_paired<T>() -> bool {
    size_of::<T>() == size_of::<u32>()
}

/// The launch of [`pair_nonzeros`].
pub fn launch(nonzeros: u32) -> LaunchConfig {
    LaunchConfig::new(nonzeros.div_ceil(BLOCK * NONZEROS), BLOCK)
}

/// Column and value of each nonzero beside each other; a thread four of them.
///
/// # Safety
///
/// `b` is what it says, `values` those of its `nonzeros` nonzeros; `pairs` has room for two words of each. The launch is
/// [`launch`]'s.
#[kernel(name = "spgemm_pair_nonzeros")]
pub unsafe fn pair_nonzeros(b: Pattern, nonzeros: u32, values: Global<f32>, pairs: GlobalMut<u32>) {
    let first = thread::index_1d() * u64::from(NONZEROS);
    let end = u64::from(nonzeros).min(first + u64::from(NONZEROS));
    // SAFETY: nonzeros of B; vectors of four begin at multiples of four.
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
    pub operands: &'a Operands,
    /// Their values; not read without values.
    pub factors: Factors<T>,
}

/// A nonzero of A: the row of B that it names, which is 2^32 - 1 if there is none, and its value.
#[derive(Clone, Copy)]
pub struct Named<T> {
    row: u32,
    value: T,
}

/// Where the row of B of a nonzero of A starts and ends, and the nonzero's value. As it has been loaded: what is computed of it
/// waits for it.
#[derive(Clone, Copy)]
pub struct Found<T> {
    start: u32,
    end: u32,
    value: T,
}

/// The products of a group's nonzeros of A, one a lane, numbered through.
struct Share<T> {
    /// Those up to the lane's own.
    sum: u32,
    /// All.
    total: u32,
    /// What is to be added to a product's number for its position in B.
    base: u32,
    /// The value of the lane's nonzero.
    value: T,
}

impl<T: Real> LaneProducts<'_, T> {
    /// Nonzero `k` of A, if that is before `end`.
    ///
    /// # Safety
    ///
    /// The operands are what they say, and it is a nonzero.
    #[inline(always)]
    pub unsafe fn name<const VALUES: bool>(&self, k: u32, end: u32) -> Named<T> {
        if k >= end {
            return Named {
                row: u32::MAX,
                value: T::ZERO,
            };
        }
        // SAFETY: a nonzero of A.
        unsafe {
            Named {
                row: self.operands.a.col_idx.load(k as usize),
                value: if VALUES {
                    self.factors.a.load(k as usize)
                } else {
                    T::ZERO
                },
            }
        }
    }

    /// Where its row of B is.
    ///
    /// The row pointers of B are fewer bytes than the extents of its rows, and all of them stay in the cache.
    ///
    /// # Safety
    ///
    /// The operands are what they say, and it is a nonzero of A or none.
    #[inline(always)]
    pub unsafe fn find(&self, named: Named<T>) -> Found<T> {
        let Named { row, value } = named;
        if row == u32::MAX {
            return Found {
                start: 0,
                end: 0,
                value,
            };
        }
        // SAFETY: a row of B.
        let (start, end) = unsafe { self.operands.b.row(row) };
        Found { start, end, value }
    }

    /// Hands each product of a row of C to `put`: its number, its column, and with `VALUES` its factors, else zeros. Gives how
    /// many there are. The row's nonzeros of A are `nonzeros`, start and end; `found` is the lane's of the first `LANES`. The loads
    /// of `N` products of a lane are in flight together.
    ///
    /// # Safety
    ///
    /// The operands are what they say. All lanes of the warp call it, those of a group of `LANES` with the same row; `put`
    /// does not synchronise.
    #[inline(always)]
    pub unsafe fn load<const LANES: u32, const N: usize, const VALUES: bool>(
        &self,
        nonzeros: (u32, u32),
        found: Found<T>,
        put: impl Fn(u32, u32, [T; 2]),
    ) -> u32 {
        let lane = warp::lane_id() % LANES;
        let step = N as u32 * LANES;
        let (mut k, end) = nonzeros;
        // SAFETY: nonzeros of the row; all lanes of the warp take part in its shuffles.
        unsafe {
            let mut share = Share::of::<LANES>(found);
            let mut before = 0;
            loop {
                let mut first = 0;
                // The warp goes on together: shuffles of all lanes cost the least.
                while warp::any(FULL_MASK, first < share.total) {
                    let some = self.some::<LANES, N, VALUES>(&share, first);
                    let _: [(); N] = array::from_fn(|u| {
                        let (column, a, b) = some[u];
                        let p = first + u as u32 * LANES + lane;
                        if p < share.total {
                            put(before + p, column, [a, b]);
                        }
                    });
                    first += step;
                }
                before += share.total;
                k = k.saturating_add(LANES);
                if !warp::any(FULL_MASK, k < end) {
                    return before;
                }
                let named = self.name::<VALUES>(k.saturating_add(lane), end);
                share = Share::of::<LANES>(self.find(named));
            }
        }
    }

    /// `N` products of the lane, from number `first` on and `LANES` apart: column and factors.
    #[inline(always)]
    unsafe fn some<const LANES: u32, const N: usize, const VALUES: bool>(
        &self,
        share: &Share<T>,
        first: u32,
    ) -> [(u32, T, T); N] {
        let lane = warp::lane_id() % LANES;
        let positions: [(u32, T); N] = array::from_fn(|u| {
            let p = first + u as u32 * LANES + lane;
            let owner = owner::<LANES>(FULL_MASK, share.sum, p);
            let base = warp::shfl_idx(FULL_MASK, share.base, owner, LANES);
            let a = if VALUES {
                warp::shfl_idx(FULL_MASK, share.value, owner, LANES)
            } else {
                T::ZERO
            };
            (base.wrapping_add(p), a)
        });
        let is_product = |u: usize| first + u as u32 * LANES + lane < share.total;
        // SAFETY: nonzeros of B; where they are paired, `T` has four bytes.
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

impl<T: Real> Share<T> {
    /// Those of the nonzeros that the group's lanes have; all lanes of the warp take part.
    #[inline(always)]
    fn of<const LANES: u32>(found: Found<T>) -> Self {
        let Found { start, end, value } = found;
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
