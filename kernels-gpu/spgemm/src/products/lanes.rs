//! Groups of lanes: their mask, their prefix sums, and the lane to which a number belongs.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// The warp's number in the grid.
#[inline(always)]
pub fn warp_of_grid() -> u32 {
    let warps = thread::block_dim_x() / WARP_SIZE;
    thread::block_idx_x() * warps + thread::thread_idx_x() / WARP_SIZE
}

/// The lanes of the caller's group of `LANES`.
#[inline(always)]
pub fn group_mask<const LANES: u32>() -> u32 {
    let group = warp::lane_id() / LANES;
    (u32::MAX >> (WARP_SIZE - LANES)) << (group * LANES)
}

/// The sum of the group's numbers up to the lane's own, modulo 2^32.
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

/// How many lanes of the group have a sum of `p` or less: the lane to which product `p` belongs.
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
