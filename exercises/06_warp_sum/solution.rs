//! All lanes take part in the shuffles. A lane without an element adds zero.

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
    let mut sum = if i < n as usize {
        // SAFETY: `i` is less than `n`, the length of `x`.
        unsafe { x.load(i) }
    } else {
        0.0
    };
    let mut step = 1;
    while step < WARP_SIZE {
        sum += warp::shfl_xor(FULL_MASK, sum, step, WARP_SIZE);
        step *= 2;
    }
    if warp::lane_id() == 0 && i < n as usize {
        // SAFETY: the warp has an element, so `sums` has one for the warp.
        unsafe { sums.store(i / 32, sum) };
    }
}
