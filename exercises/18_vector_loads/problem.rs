//! # 18: Vector loads
//!
//! A lane can load 16 bytes by one instruction. A warp then loads 512 bytes in one request. The number of sectors is
//! the same, but there are four times fewer instructions, and more bytes in flight:
//!
//! ```text
//! load      lane 0: x[0]             lane 1: x[1]             4 sectors for each request
//! load4     lane 0: x[0] to x[3]     lane 1: x[4] to x[7]    16 sectors for each request
//! ```
//!
//! The address of a vector load must be a multiple of its 16 bytes. Each allocation starts at one, so the index must be
//! a multiple of 4. And all four elements must exist.
//!
//! Your task: let each thread compute four neighbouring elements with `load4` and `store4`, for every n.
//!
//! The file as delivered fails with "128 load requests to global memory; the maximum is 32".

use cuda_std::prelude::*;

/// `y[i] = 2 * x[i]`, four elements for each thread.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each, and start at multiples of 16 bytes.
#[kernel]
pub unsafe fn double_by_four(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let n = n as usize;
    let first = 4 * thread::block_idx_x() as usize * thread::block_dim_x() as usize;
    for j in 0..4 {
        let k = first + (j * thread::block_dim_x() + thread::thread_idx_x()) as usize;
        if k < n {
            // SAFETY: `k` is less than `n`, the length of both.
            unsafe {
                y.store(k, 2.0 * x.load(k));
            }
        }
    }
}
