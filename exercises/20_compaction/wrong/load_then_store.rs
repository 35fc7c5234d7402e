//! The counter is loaded atomically and stored atomically, but another warp can take the same places between the two.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Writes the positive elements of `x` to `out`, and adds their number to `count[0]`.
///
/// # Safety
///
/// `x` holds `n` elements, `out` has room for those that are positive, and `count[0]` is 0. Blocks have whole warps.
#[kernel]
pub unsafe fn keep_positive(n: u32, x: Global<i32>, out: GlobalMut<i32>, count: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    let lane = warp::lane_id();
    // SAFETY: `i` is less than `n` where `x` is read. All lanes reach the ballot and the shuffle. The counter gives
    // each warp places of its own, and the bits below a lane give each of its elements one of them.
    unsafe {
        let element = if i < n as usize { x.load(i) } else { 0 };
        let kept = warp::ballot(FULL_MASK, element > 0);
        let mut first = 0;
        if lane == 0 {
            first = count.atomic_load(Scope::Device, 0);
            count.atomic_store(Scope::Device, 0, first + kept.count_ones());
        }
        let first = warp::shfl_idx(FULL_MASK, first, 0, WARP_SIZE);
        if element > 0 {
            let below = (kept & ((1 << lane) - 1)).count_ones();
            out.store((first + below) as usize, element);
        }
    }
}
