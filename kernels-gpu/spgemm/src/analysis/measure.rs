//! The products of a row of C measured: how many they are, which columns they span, and whether rows of B are runs.

use crate::products::operands::Operands;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Lanes of a group, and groups of a warp.
pub(crate) const GROUP: u32 = 8;
pub(crate) const GROUPS: u32 = WARP_SIZE / GROUP;

/// Nonzeros of a thread whose loads are in flight together.
const UNROLL: usize = 4;

/// What is found out of a row's products.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// How many there are.
    pub products: u32,
    /// The first of their columns.
    pub first: u32,
    /// The last of their columns.
    pub last: u32,
    /// 1 if all the rows of B are runs of neighbouring columns.
    pub runs: u32,
}

impl Found {
    pub const NOTHING: Self = Self {
        products: 0,
        first: u32::MAX,
        last: 0,
        runs: 1,
    };

    /// Of every `stride`-th nonzero from `k` on and before `end`.
    ///
    /// # Safety
    ///
    /// The operands are what they say, and these are nonzeros of A.
    #[inline(always)]
    pub unsafe fn of(operands: &Operands, mut k: u32, end: u32, stride: u32) -> Self {
        let mut found = Self::NOTHING;
        while k < end {
            // Nonzeros of A are so few that no position comes near 2^32.
            let columns: [u32; UNROLL] = array::from_fn(|u| {
                let k = k + u as u32 * stride;
                if k < end {
                    // SAFETY: a nonzero of A.
                    unsafe { operands.a.col_idx.load(k as usize) }
                } else {
                    u32::MAX
                }
            });
            let extents: [[u32; 4]; UNROLL] = array::from_fn(|u| {
                if columns[u] == u32::MAX {
                    return [0, 0, u32::MAX, 0];
                }
                // SAFETY: a row of B.
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
                    found.runs = 0;
                }
            }
            k += UNROLL as u32 * stride;
        }
        found
    }

    /// Of all lanes of the group.
    #[inline(always)]
    pub fn joined_in_group(self) -> Self {
        let mut found = self;
        let mut distance = GROUP / 2;
        while distance > 0 {
            let other = found.of_lane(warp::lane_id() ^ distance);
            found = Self {
                products: found.products.wrapping_add(other.products),
                first: found.first.min(other.first),
                last: found.last.max(other.last),
                runs: found.runs & other.runs,
            };
            distance /= 2;
        }
        found
    }

    /// That of a lane of the warp.
    #[inline(always)]
    pub fn of_lane(self, lane: u32) -> Self {
        let of_lane = |number| warp::shfl_idx(FULL_MASK, number, lane, WARP_SIZE);
        Self {
            products: of_lane(self.products),
            first: of_lane(self.first),
            last: of_lane(self.last),
            runs: of_lane(self.runs),
        }
    }

    /// Of all lanes of the warp.
    #[inline(always)]
    pub fn joined(self) -> Self {
        Self {
            products: warp::reduce_add(FULL_MASK, self.products),
            first: warp::reduce_min(FULL_MASK, self.first),
            last: warp::reduce_max(FULL_MASK, self.last),
            runs: warp::reduce_and(FULL_MASK, self.runs),
        }
    }
}
