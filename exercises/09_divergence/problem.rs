//! # 09: Divergence
//!
//! A warp executes one instruction for its 32 lanes. If its lanes run a loop a different number of times, the warp runs
//! it as often as the slowest lane. The other lanes wait. This is called divergence:
//!
//! ```text
//! lane            0  1  2  3  4  5 ...
//! iteration 0     x  x  x  x  x  x       32 active lanes
//! iteration 1     x  x  x  x  x  x       32
//! iteration 2        x     x     x       16
//! ...
//! iteration 15       x     x     x       16
//! ```
//!
//! Here elements at even places take 2 iterations, and elements at odd places take 16. Neighbouring threads compute
//! neighbouring elements, so each warp takes 16 iterations, and half of its lanes wait in 14 of them.
//!
//! Your task: give the threads of a block other elements of the block, so that no lane waits for another one. Loads of
//! x and stores of y then touch twice as many sectors. Here that costs less than the divergence.
//!
//! The file as delivered fails with "18.82 active lanes per load request; the minimum is 31".

use cuda_std::prelude::*;

/// `y[i] = x[i]` times the sum of the first elements of `table`: 2 elements for even `i`, and 16 for odd `i`.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each, `table` holds 16. Blocks have 64 threads.
#[kernel]
pub unsafe fn weigh(n: u32, x: Global<f32>, table: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    if i >= n as usize {
        return;
    }
    let length = if i.is_multiple_of(2) { 2 } else { 16 };
    // SAFETY: `i` is less than `n`, the length of `x` and `y`; `k` is less than 16, the length of the table.
    unsafe {
        let element = x.load(i);
        let mut sum = 0.0;
        for k in 0..length {
            sum += table.load(k) * element;
        }
        y.store(i, sum);
    }
}
