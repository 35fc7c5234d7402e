//! Groups of neighbouring lanes of a warp: their mask, their prefix sums, and the search for the
//! lane that owns a number.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// The warp's number in a grid of one dimension.
#[inline(always)]
pub fn warp_of_grid() -> u32 {
    thread::block_idx_x() * (thread::block_dim_x() / WARP_SIZE) + thread::thread_idx_x() / WARP_SIZE
}

/// The mask of the calling lane's group of `LANES` lanes.
#[inline(always)]
pub fn group_mask<const LANES: u32>() -> u32 {
    let group = warp::lane_id() / LANES;
    (u32::MAX >> (WARP_SIZE - LANES)) << (group * LANES)
}

/// The sum of `number` over the group's lanes up to and including this one, modulo 2^32.
#[inline(always)]
pub fn inclusive_sum<const LANES: u32>(mask: u32, number: u32) -> u32 {
    let lane = warp::lane_id() % LANES;
    let mut sum = number;
    let mut delta = 1;
    while delta < LANES {
        let below = warp::shfl_up(mask, sum, delta, LANES);
        if lane >= delta {
            sum = sum.wrapping_add(below);
        }
        delta *= 2;
    }
    sum
}

/// The lane that owns product `p`: the number of lanes whose `sum` is at most `p`. `sum` is the
/// inclusive prefix sum of the lanes' numbers of products. A binary search with `log2(LANES)`
/// shuffles.
#[inline(always)]
pub fn owner<const LANES: u32>(mask: u32, sum: u32, p: u32) -> u32 {
    let mut owner = 0;
    let mut half = LANES / 2;
    while half > 0 {
        if warp::shfl_idx(mask, sum, owner + half - 1, LANES) <= p {
            owner += half;
        }
        half /= 2;
    }
    owner
}
