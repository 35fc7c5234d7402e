//! A lane adds for itself and the lanes above it that have its number without a gap, as in a segmented sum.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// `counts[k]` += the number of elements of `x` that are `k`, one thread for each element.
///
/// # Safety
///
/// `x` holds `n` numbers less than the length of `counts`. Blocks have whole warps.
#[kernel]
pub unsafe fn count(n: u32, x: Global<u32>, counts: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    let lanes = warp::ballot(FULL_MASK, i < n as usize);
    if i < n as usize {
        unsafe {
            let number = x.load(i);
            let lane = warp::lane_id();
            let below = warp::shfl_up(lanes, number, 1, 32);
            let first = lane == 0 || below != number;
            let starts = warp::ballot(lanes, first) >> lane >> 1;
            if first {
                let end = (lane + 1 + starts.trailing_zeros()).min(lanes.count_ones());
                counts.reduce_add(Scope::Device, number as usize, end - lane);
            }
        }
    }
}
