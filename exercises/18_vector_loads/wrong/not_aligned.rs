//! The last group is moved to the left so that it ends at n, where its address is no multiple of 16.

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
    unsafe {
        if n < 4 {
            for k in i..n {
                y.store(k, 2.0 * x.load(k));
            }
        } else if i < n {
            let i = i.min(n - 4);
            y.store4(i, x.load4(i).map(|element| 2.0 * element));
        }
    }
}
