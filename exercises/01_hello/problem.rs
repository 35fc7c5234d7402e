//! # 01: One thread for each element
//!
//! A kernel is a function that many threads execute at the same time. Threads form blocks, and the blocks form a grid.
//! Each thread computes from its position which element is its own:
//!
//! ```text
//! block                  0                    1
//! thread in the block    0   1   2  ... 127   0   1   2  ... 127
//! thread::index_1d()     0   1   2  ... 127  128 129 130 ... 255
//! ```
//!
//! This kernel computes `y[i] = 2 * x[i]`. All blocks have the same size, here 128 threads. For 1000 elements the
//! launch has 8 blocks, which are 1024 threads: 24 threads have no element.
//!
//! Your task: make the kernel right for every n. A pointer such as `Global<f32>` does not know its length.
//!
//! The file as delivered fails with "read-only global access out of bounds: 4 bytes at x[1] of 1 f32".

use cuda_std::prelude::*;

/// `y[i] = 2 * x[i]`, one thread for each element.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each.
#[kernel]
pub unsafe fn double(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    // SAFETY: `x` and `y` have an element `i`. (Is that true?)
    unsafe { y.store(i, 2.0 * x.load(i)) };
}
