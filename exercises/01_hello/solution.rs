//! The launch has more threads than elements, so each thread compares its index with `n`.

use cuda_std::prelude::*;

/// `y[i] = 2 * x[i]`, one thread for each element.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each.
#[kernel]
pub unsafe fn double(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is less than `n`, the length of both.
        unsafe { y.store(i, 2.0 * x.load(i)) };
    }
}
