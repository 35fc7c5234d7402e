//! The products of a short row of C, a few to each lane, all of them loaded at once: what sorting wants.
//!
//! A product is one place of B, but its column and its value are two, and each is a piece of memory of its own however short
//! the row of B is. So the columns and values of B are first put beside each other, in one pass over B; a row of five
//! nonzeros is then 40 bytes in one piece. Of a uniform matrix of 5 million nonzeros the rows of 17 to 32 products then move
//! 390 MB of an H200's memory and not 540; as they wait more for the latency than for the bytes, that is 232 us and not 250, and
//! the pass takes 22. Elements of 8 bytes stay where they are.

use super::lanes::{group_mask, inclusive_sum, owner};
use super::operands::{Factors, Operands, Pattern};
use core::array;
use core::mem::transmute_copy;
use cuda_std::prelude::*;

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

/// A row of A whose products are loaded.
pub struct LaneProducts<'a, T> {
    /// A and B.
    pub operands: &'a Operands,
    /// Their values; not read without values.
    pub factors: Factors<T>,
    /// The row's nonzeros in A, start and end.
    pub nonzeros: (u32, u32),
}

impl<T: Real> LaneProducts<'_, T> {
    /// Hands each product to `put`: its number, its column, and with `VALUES` its factors, else zeros. Gives how many there are.
    /// The loads of `N` products of a lane are in flight together.
    ///
    /// # Safety
    ///
    /// The operands are what they say. All lanes of the group of `LANES` call it with the same arguments; `put` does not
    /// synchronise.
    #[inline(always)]
    pub unsafe fn load<const LANES: u32, const N: usize, const VALUES: bool>(
        &self,
        put: impl Fn(u32, u32, [T; 2]),
    ) -> u32 {
        let mask = group_mask::<LANES>();
        let lane = warp::lane_id() % LANES;
        let (mut k, end) = self.nonzeros;
        let mut before = 0;
        // SAFETY: nonzeros of the row; all lanes of the group take part in its shuffles.
        unsafe {
            while k < end {
                let (start, len, value) = self.nonzero::<VALUES>(k + lane, end);
                let sum = inclusive_sum::<LANES>(mask, len);
                let total = warp::shfl_idx(mask, sum, LANES - 1, LANES);
                let base = start.wrapping_sub(sum - len);
                let mut first = 0;
                while first < total {
                    let loaded: [(u32, T, T); N] = array::from_fn(|u| {
                        let p = first + u as u32 * LANES + lane;
                        let owner = owner::<LANES>(mask, sum, p);
                        let base = warp::shfl_idx(mask, base, owner, LANES);
                        let a = if VALUES {
                            warp::shfl_idx(mask, value, owner, LANES)
                        } else {
                            T::ZERO
                        };
                        if p >= total {
                            return (u32::MAX, T::ZERO, T::ZERO);
                        }
                        let (column, b) = self.of_b::<VALUES>(base.wrapping_add(p) as usize);
                        (column, a, b)
                    });
                    let _: [(); N] = array::from_fn(|u| {
                        let (column, a, b) = loaded[u];
                        let p = first + u as u32 * LANES + lane;
                        if p < total {
                            put(before + p, column, [a, b]);
                        }
                    });
                    first += N as u32 * LANES;
                }
                before += total;
                k += LANES;
            }
        }
        before
    }

    /// Where the row of B of a nonzero of A starts, how long it is, and the nonzero's value; nothing from `end` on.
    ///
    /// The row pointers of B are fewer bytes than the extents of its rows, and all of them stay in the cache.
    #[inline(always)]
    unsafe fn nonzero<const VALUES: bool>(&self, k: u32, end: u32) -> (u32, u32, T) {
        if k >= end {
            return (0, 0, T::ZERO);
        }
        // SAFETY: a nonzero of A, a row of B.
        unsafe {
            let row = self.operands.a.col_idx.load(k as usize);
            let (start, end) = self.operands.b.row(row);
            let value = if VALUES {
                self.factors.a.load(k as usize)
            } else {
                T::ZERO
            };
            (start, end - start, value)
        }
    }

    /// Column and value of a nonzero of B.
    #[inline(always)]
    unsafe fn of_b<const VALUES: bool>(&self, position: usize) -> (u32, T) {
        // SAFETY: a nonzero of B; where they are paired, `T` has four bytes.
        unsafe {
            if VALUES && const { are_paired::<T>() } && self.factors.pairs.address() != 0 {
                let [column, value] = self.factors.pairs.load2(2 * position);
                return (column, transmute_copy(&value));
            }
            let value = if VALUES {
                self.factors.b.load(position)
            } else {
                T::ZERO
            };
            (self.operands.b.col_idx.load(position), value)
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> &'static [&'static str] {
    pair_nonzeros().entry_points()
}

const _: () = assert!(NONZEROS == 4);
