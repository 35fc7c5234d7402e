//! Lanes of a warp whose products go to the same place, its *peers*. Their atomic additions would be
//! serialised, so they add up their products first.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// The sum of `product` over the lanes with the same `place`, and whether the lane is the first of
/// them. The first lane has the sum. Place 2^32 - 1 means no product. All lanes of the warp call it.
///
/// In each round a peer adds the product of the next remaining peer, and every second one drops
/// out: `log2` of the number of peers.
#[inline(always)]
pub fn sum_peers<T: Real>(place: u32, product: T) -> (bool, T) {
    let lane = warp::lane_id();
    let peers = warp::match_any(FULL_MASK, place);
    // The peers in higher lanes that have not been added to another one.
    let mut others = peers & (u32::MAX << lane << 1);
    let mut rank = (peers & ((1 << lane) - 1)).count_ones();
    let mut sum = product;
    // A lane without a product has nothing to add.
    if place == u32::MAX {
        others = 0;
    }
    while warp::any(FULL_MASK, others != 0) {
        let next = others.trailing_zeros() % WARP_SIZE;
        let other = warp::shfl_idx(FULL_MASK, sum, next, WARP_SIZE);
        if others != 0 {
            sum += other;
        }
        others &= !warp::ballot(FULL_MASK, rank & 1 == 1);
        rank /= 2;
    }
    (lane == peers.trailing_zeros(), sum)
}
