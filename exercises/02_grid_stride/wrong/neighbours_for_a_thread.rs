//! Each thread computes neighbouring elements, so at each moment the threads work on distant ones.

use cuda_std::prelude::*;

/// `y[i] = a * x[i] + y[i]`, by a grid of any size.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each.
#[kernel]
pub unsafe fn axpy(n: u32, a: f32, x: Global<f32>, y: GlobalMut<f32>) {
    let threads = thread::grid_dim_x() as usize * thread::block_dim_x() as usize;
    let each = (n as usize).div_ceil(threads);
    let first = thread::index_1d() as usize * each;
    for i in first..(first + each).min(n as usize) {
        // SAFETY: `i` is less than `n`, the length of both.
        unsafe { y.store(i, a.mul_add(x.load(i), y.load(i))) };
    }
}
