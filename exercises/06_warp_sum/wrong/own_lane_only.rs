//! Each lane names itself alone in the mask, but it reads another lane.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// `sums[w]` = the sum of the 32 elements of `x` from `32 * w` on; elements from `n` on count as zero.
///
/// # Safety
///
/// `x` holds `n` elements, `sums` holds one for 32 of them, rounded up. Blocks have whole warps.
#[kernel]
pub unsafe fn warp_sum(n: u32, x: Global<f32>, sums: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    // SAFETY: `i` is less than `n`, the length of `x`.
    let mut sum = if i < n as usize {
        unsafe { x.load(i) }
    } else {
        0.0
    };
    let mut step = 1;
    while step < WARP_SIZE {
        sum += warp::shfl_xor(1 << warp::lane_id(), sum, step, WARP_SIZE);
        step *= 2;
    }
    if warp::lane_id() == 0 && i < n as usize {
        // SAFETY: the warp has an element, so `sums` has one for the warp.
        unsafe { sums.store(i / 32, sum) };
    }
}
