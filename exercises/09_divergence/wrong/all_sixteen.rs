//! All lanes are active in 16 iterations, but most of them load what they do not need.

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
        for k in 0..16 {
            let weight = table.load(k);
            sum += if k < length { weight * element } else { 0.0 };
        }
        y.store(i, sum);
    }
}
