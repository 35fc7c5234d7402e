//! The mask has the lanes with an element, but they still read lanes without one.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// `sums[w]` = the sum of the 32 elements of `x` from `32 * w` on; elements from `n` on count as zero.
///
/// # Safety
///
/// `x` holds `n` elements, `sums` holds one for 32 of them, rounded up. Blocks have whole warps.
#[kernel]
pub unsafe fn warp_sum(n: u32, x: Global<f32>, sums: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    let mask = warp::ballot(FULL_MASK, i < n as usize);
    if i >= n as usize {
        return;
    }
    // SAFETY: `i` is less than `n`, the length of `x`.
    let mut sum = unsafe { x.load(i) };
    let mut step = 1;
    while step < WARP_SIZE {
        sum += warp::shfl_xor(mask, sum, step, WARP_SIZE);
        step *= 2;
    }
    if warp::lane_id() == 0 {
        // SAFETY: lane 0 has the first element of its warp, so `sums` has an element for the warp.
        unsafe { sums.store(i / 32, sum) };
    }
}
