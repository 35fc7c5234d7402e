//! The first element exists, but the other three may not.

use cuda_std::prelude::*;

/// `y[i] = 2 * x[i]`, four elements for each thread.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each, and start at multiples of 16 bytes.
#[kernel]
pub unsafe fn double_by_four(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let n = n as usize;
    let i = 4 * thread::index_1d() as usize;
    if i < n {
        unsafe { y.store4(i, x.load4(i).map(|element| 2.0 * element)) };
    }
}
