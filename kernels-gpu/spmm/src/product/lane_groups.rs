//! How the lanes of a warp share its nonzeros.

use crate::product::reduction::Reducer;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// The lanes of a nonzero: a power of two, enough for the vectors of a row of X, or all of a warp.
pub(in crate::product) const fn lanes(features: u32, width: u32) -> u32 {
    let vectors = features.div_ceil(width);
    if vectors < WARP_SIZE {
        vectors.next_power_of_two()
    } else {
        WARP_SIZE
    }
}

/// A warp as groups of lanes: a group takes a nonzero, or a row, and each lane of it a vector of features.
#[derive(Clone, Copy)]
pub(in crate::product) struct LaneGroups {
    /// The binary logarithm of the lanes of a group.
    shift: u32,
}

impl LaneGroups {
    /// The groups for vectors of `width` features.
    #[inline(always)]
    pub fn new(features: u32, width: u32) -> Self {
        Self {
            shift: lanes(features, width).trailing_zeros(),
        }
    }

    /// The lanes of a group.
    #[inline(always)]
    pub fn lanes(self) -> u32 {
        1 << self.shift
    }

    /// The groups of a warp.
    #[inline(always)]
    pub fn count(self) -> u32 {
        WARP_SIZE >> self.shift
    }

    /// The lane's group.
    #[inline(always)]
    pub fn group(self) -> u32 {
        warp::lane_id() >> self.shift
    }

    /// The lane's vector of the row of X or Y.
    #[inline(always)]
    pub fn vector(self) -> u32 {
        warp::lane_id() & (self.lanes() - 1)
    }

    /// The group of a lane.
    #[inline(always)]
    pub fn of_lane(self, lane: u32) -> u32 {
        lane >> self.shift
    }
}

/// The groups' parts joined, in all groups of the warp.
#[inline(always)]
pub(in crate::product) fn join_groups<S: Real, R: Reducer, const WIDTH: usize>(
    groups: LaneGroups,
    part: [S; WIDTH],
) -> [S; WIDTH] {
    join::<S, R, WIDTH>(groups, WARP_SIZE, part)
}

/// The same for the groups among `lanes` neighbouring lanes, a power of two. All lanes of the warp call it, and have
/// the same number.
#[inline(always)]
pub(in crate::product) fn join<S: Real, R: Reducer, const WIDTH: usize>(
    groups: LaneGroups,
    lanes: u32,
    part: [S; WIDTH],
) -> [S; WIDTH] {
    let mut joined = part;
    let mut distance = groups.lanes();
    while distance < lanes {
        joined = array::from_fn(|k| {
            let other = warp::shfl_xor(FULL_MASK, joined[k], distance, WARP_SIZE);
            R::join(joined[k], other)
        });
        distance *= 2;
    }
    joined
}
