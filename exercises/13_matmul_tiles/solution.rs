//! A block loads tiles of A and B; elements outside of the matrices are zeros.

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
    let a_tile = shared_array!(f32; TILE * TILE);
    let b_tile = shared_array!(f32; TILE * TILE);
    let n = n as usize;
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let row = thread::block_idx_y() as usize * TILE + y;
    let col = thread::block_idx_x() as usize * TILE + x;
    // SAFETY: elements are loaded and stored only if they exist. The first barrier of a round separates the writes of
    // the tiles from the reads, and the second one separates these reads from the writes of the next round.
    unsafe {
        let mut sum = 0.0;
        for first in (0..n).step_by(TILE) {
            let (a_col, b_row) = (first + x, first + y);
            let a_is_inside = row < n && a_col < n;
            let b_is_inside = b_row < n && col < n;
            a_tile.store(
                y * TILE + x,
                if a_is_inside {
                    a.load(row * n + a_col)
                } else {
                    0.0
                },
            );
            b_tile.store(
                y * TILE + x,
                if b_is_inside {
                    b.load(b_row * n + col)
                } else {
                    0.0
                },
            );
            thread::sync_threads();
            for k in 0..TILE {
                sum += a_tile.load(y * TILE + k) * b_tile.load(k * TILE + x);
            }
            thread::sync_threads();
        }
        if row < n && col < n {
            c.store(row * n + col, sum);
        }
    }
}
