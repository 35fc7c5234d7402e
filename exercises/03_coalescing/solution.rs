//! The threads of a block copy 128 neighbouring elements, then the next 128.

use cuda_std::prelude::*;

/// Elements that a thread copies.
const ELEMENTS: usize = 4;

/// `y[i] = x[i]`: a thread copies four elements.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each. Blocks have 128 threads.
#[kernel]
pub unsafe fn copy(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let threads = thread::block_dim_x() as usize;
    let first = thread::block_idx_x() as usize * threads * ELEMENTS;
    for k in 0..ELEMENTS {
        let i = first + k * threads + thread::thread_idx_x() as usize;
        if i < n as usize {
            // SAFETY: `i` is less than `n`, the length of both.
            unsafe { y.store(i, x.load(i)) };
        }
    }
}
