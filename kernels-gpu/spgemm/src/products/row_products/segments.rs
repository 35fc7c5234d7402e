//! The parts of rows of B that the lanes of a warp hold.

use crate::products::lanes::{are_lowest, nth_set_bit};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// The part of a row of B that lies in the window, and the nonzero of A that it is multiplied by.
#[derive(Clone, Copy)]
pub(crate) struct RowSegment<T> {
    pub start: u32,
    pub len: u32,
    pub value: T,
}

/// The segments of the warp's lanes in the same order, those that are empty last. Most warps have
/// none.
#[inline(always)]
pub(super) fn without_empty_lanes<T: Real>(mine: RowSegment<T>) -> RowSegment<T> {
    let kept = warp::ballot(warp::FULL_MASK, mine.len > 0);
    if are_lowest(kept) {
        return mine;
    }
    let lane = warp::lane_id();
    let from = nth_set_bit(kept, lane);
    let [start, len] = [mine.start, mine.len]
        .map(|of_lane| warp::shfl_idx(warp::FULL_MASK, of_lane, from, WARP_SIZE));
    RowSegment {
        start,
        len: if lane < kept.count_ones() { len } else { 0 },
        value: warp::shfl_idx(warp::FULL_MASK, mine.value, from, WARP_SIZE),
    }
}
