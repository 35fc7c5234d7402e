//! Copies: the same number of elements, by different addresses of the lanes.

use cuda_std::prelude::*;

/// `y[i] = x[i * stride]`: neighbouring threads read elements that are `stride` apart.
///
/// # Safety
///
/// `y` holds `n` elements, `x` holds `n * stride`.
#[kernel]
pub unsafe fn copy_strided(n: u32, stride: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is less than `n`, so `i * stride` is less than the length of `x`.
        unsafe { y.store(i, x.load(i * stride as usize)) };
    }
}

/// `y[i] = x[i]`: each thread copies four neighbours with one load and one store of 16 bytes.
///
/// # Safety
///
/// `x` and `y` hold `n` elements, a multiple of four.
#[kernel]
pub unsafe fn copy_by_four(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let i = 4 * thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is a multiple of four less than `n`, so the four elements exist.
        unsafe { y.store4(i, x.load4(i)) };
    }
}
