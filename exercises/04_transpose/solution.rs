//! Rows of the tile are 33 elements apart, so the elements of a column are in 32 different banks.

use cuda_std::prelude::*;

/// Rows and columns of a tile.
const TILE: usize = 32;

/// Elements from a row of the tile to the next one; one of them is never used.
const STRIDE: usize = TILE + 1;

/// `out = matrix` transposed. A block moves a tile of 32 x 32 elements; a thread moves four.
///
/// # Safety
///
/// `matrix` has `rows` x `cols` elements, `out` as many. Blocks have 32 x 8 threads.
#[kernel]
pub unsafe fn transpose(rows: u32, cols: u32, matrix: Global<f32>, out: GlobalMut<f32>) {
    let tile = shared_array!(f32; TILE * STRIDE);
    let (rows, cols) = (rows as usize, cols as usize);
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    // SAFETY: elements of both matrices are accessed only if they exist. Each thread writes its own elements of the
    // tile, and the barrier separates these writes from the reads of other threads.
    unsafe {
        for k in (0..TILE).step_by(8) {
            let (row, col) = (first_row + y + k, first_col + x);
            if row < rows && col < cols {
                tile.store((y + k) * STRIDE + x, matrix.load(row * cols + col));
            }
        }
        thread::sync_threads();
        for k in (0..TILE).step_by(8) {
            let (row, col) = (first_row + x, first_col + y + k);
            if row < rows && col < cols {
                out.store(col * rows + row, tile.load(x * STRIDE + y + k));
            }
        }
    }
}
