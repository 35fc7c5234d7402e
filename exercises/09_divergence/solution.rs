//! One warp of a block computes the even elements, the other one the odd elements.

use cuda_std::prelude::*;

/// `y[i] = x[i]` times the sum of the first elements of `table`: 2 elements for even `i`, and 16 for odd `i`.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each, `table` holds 16. Blocks have 64 threads.
#[kernel]
pub unsafe fn weigh(n: u32, x: Global<f32>, table: Global<f32>, y: GlobalMut<f32>) {
    let t = thread::thread_idx_x() as usize;
    let first = thread::block_idx_x() as usize * 64;
    // The first warp computes the even elements of the block, and the second warp computes the odd ones.
    let i = first + 2 * (t % 32) + t / 32;
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
