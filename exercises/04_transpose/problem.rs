//! # 04: Transpose through shared memory
//!
//! A kernel that reads rows and writes columns has coalesced loads, but its stores are far apart. Shared memory solves
//! this: a block loads a tile of 32 x 32 elements row by row, and then stores it so that neighbouring lanes write
//! neighbouring elements. A barrier between the two makes the tile visible to all threads of the block.
//!
//! Shared memory has 32 banks. Element i of 4 bytes is in bank i % 32. In one pass, each bank delivers one element. If
//! the lanes of a warp read several elements of one bank, the request takes several passes: a bank conflict.
//!
//! ```text
//! tile       column 0   1   2  ...  31
//! row 0           b0   b1  b2  ... b31     a row: 32 banks
//! row 1           b0   b1  b2  ... b31
//! ...             a column: 32 times bank 0, so 31 conflicts
//! ```
//!
//! Your task: this kernel reads columns of the tile. Move the tile's elements so that no request has a conflict.
//!
//! The file as delivered fails with "bank conflicts; the maximum is 0".

use cuda_std::prelude::*;

/// Rows and columns of a tile.
const TILE: usize = 32;

/// Elements from a row of the tile to the next one.
const STRIDE: usize = TILE;

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
