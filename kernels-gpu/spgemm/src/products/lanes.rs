//! Groups of neighbouring lanes of a warp: their prefix sums, and the lane that owns a number.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// The warp's number in a grid of one dimension.
#[inline(always)]
pub fn warp_of_grid() -> u32 {
    thread::block_idx_x() * (thread::block_dim_x() / WARP_SIZE) + thread::thread_idx_x() / WARP_SIZE
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

/// The place of set bit number `n` of `bits`, counted from 0 on; 31 if fewer are set.
#[inline(always)]
pub fn nth_set_bit(bits: u32, n: u32) -> u32 {
    let (mut place, mut left) = (0, n);
    let mut half = 16;
    while half > 0 {
        let below = (bits >> place & ((1 << half) - 1)).count_ones();
        if left >= below {
            left -= below;
            place += half;
        }
        half /= 2;
    }
    place
}

/// Whether the set bits of `bits` are its lowest ones.
#[inline(always)]
pub fn are_lowest(bits: u32) -> bool {
    bits & bits.wrapping_add(1) == 0
}

/// The lane that owns number `first` plus the calling lane's number: the last one that starts at it
/// or before. Lanes without numbers, whose `start` is 2^32 - 1, come after the others. There is an
/// owner of `first`. All lanes of the warp take part; it takes a vote and a reduction, where
/// [`owner`] takes five shuffles that wait for each other.
#[inline(always)]
pub fn owner_by_starts(start: u32, first: u32) -> u32 {
    let before = warp::ballot(warp::FULL_MASK, start < first).count_ones();
    let bit = start.wrapping_sub(first);
    let begin = warp::reduce_or(warp::FULL_MASK, if bit < WARP_SIZE { 1 << bit } else { 0 });
    let up_to_lane = begin & (u32::MAX >> (WARP_SIZE - 1 - warp::lane_id()));
    before + up_to_lane.count_ones() - 1
}
