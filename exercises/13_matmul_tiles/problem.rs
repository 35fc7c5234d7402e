//! # 13: Matrix multiplication with tiles
//!
//! Each element of C = A B is the product of a row of A and a column of B. One thread computes one element, and a block
//! computes 16 x 16 elements. In this kernel each thread loads its whole row and column from global memory. But the
//! 16 threads of a row of the block load the same row of A.
//!
//! In shared memory, a block can keep a tile of A and a tile of B, of 16 x 16 elements each:
//!
//! ```text
//!                      B   | tile 0 |
//!                          | tile 1 |
//! A  tile 0 | tile 1 |     [ C of the block ]      round 0: tile 0 of A times tile 0 of B, then round 1
//! ```
//!
//! In each round, each thread loads one element of each tile, and then makes 16 multiplications with elements of shared
//! memory. So there are 16 times fewer loads from global memory.
//!
//! Your task: load tiles. n need not be a multiple of 16.
//!
//! The file as delivered fails with "16384 load requests to global memory; the maximum is 1024".

use cuda_std::prelude::*;

/// Rows and columns of a tile.
const TILE: usize = 16;

/// `C = A B`, one thread for each element of C.
///
/// # Safety
///
/// `a`, `b` and `c` hold `n` x `n` elements each. Blocks have 16 x 16 threads.
#[kernel]
pub unsafe fn multiply(n: u32, a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>) {
    let n = n as usize;
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let row = thread::block_idx_y() as usize * TILE + y;
    let col = thread::block_idx_x() as usize * TILE + x;
    if row >= n || col >= n {
        return;
    }
    // SAFETY: `row`, `col` and `k` are less than `n`.
    unsafe {
        let mut sum = 0.0;
        for k in 0..n {
            sum += a.load(row * n + k) * b.load(k * n + col);
        }
        c.store(row * n + col, sum);
    }
}
