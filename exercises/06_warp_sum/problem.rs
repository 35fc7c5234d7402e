//! # 06: A warp adds up its elements
//!
//! The 32 lanes of a warp can exchange values without shared memory: `warp::shfl_xor(mask, value, step, 32)` returns
//! the `value` of the lane whose number differs in the bit `step`. After five shuffles all lanes have the sum:
//!
//! ```text
//! lane       0        1        2        3        4    ...
//! step 1    0+1      0+1      2+3      2+3      4+5
//! step 2  0+1+2+3  0+1+2+3  0+1+2+3  0+1+2+3  4+5+6+7
//! ```
//!
//! The mask has a bit for each lane that takes part. All lanes of the mask must call the same shuffle, and each lane
//! must read a lane of the mask. A GPU checks neither: it would return any value, or wait for ever.
//!
//! Your task: this kernel is right when n is a multiple of 32. Make it right for every n.
//!
//! The file as delivered fails with n = 1: the mask has a lane that "has returned from the kernel".

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
    if i >= n as usize {
        return;
    }
    // SAFETY: `i` is less than `n`, the length of `x`.
    let mut sum = unsafe { x.load(i) };
    let mut step = 1;
    while step < WARP_SIZE {
        sum += warp::shfl_xor(FULL_MASK, sum, step, WARP_SIZE);
        step *= 2;
    }
    if warp::lane_id() == 0 {
        // SAFETY: lane 0 has the first element of its warp, so `sums` has an element for the warp.
        unsafe { sums.store(i / 32, sum) };
    }
}
