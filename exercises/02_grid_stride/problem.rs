//! # 02: The grid-stride loop
//!
//! A launch can have a grid of fixed size, for example as many threads as the GPU can hold. Then each thread computes
//! several elements. Here the grid has 4 blocks of 64 threads, which are 256 threads:
//!
//! ```text
//! element   0   1  ... 255  256 257 ... 511  512 513 ...
//! thread    0   1  ... 255    0   1 ... 255    0   1 ...
//! ```
//!
//! From one element of a thread to its next one, the index grows by the number of threads of the grid. So at each
//! moment neighbouring threads work on neighbouring elements. This loop is called a grid-stride loop.
//!
//! If each thread took neighbouring elements instead, the result would be right too, but memory would move more bytes.
//! The check refuses that with "sectors per load request". Chapter 2 of the book explains the words.
//!
//! Your task: this kernel computes one element in each thread. Make each thread compute all its elements.
//!
//! The file as delivered leaves the elements from 256 on as they were. It fails with "y[256] is" and a wrong number.

use cuda_std::prelude::*;

/// `y[i] = a * x[i] + y[i]`, by a grid of any size.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each.
#[kernel]
pub unsafe fn axpy(n: u32, a: f32, x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is less than `n`, the length of both.
        unsafe { y.store(i, a.mul_add(x.load(i), y.load(i))) };
    }
}
