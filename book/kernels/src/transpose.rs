//! Transposing a matrix: directly, and through a tile in shared memory.

use cuda_std::prelude::*;

/// Rows and columns of a tile.
pub const TILE: u32 = 32;

/// Rows of a tile that the 256 threads of a block move at once.
pub const ROWS_AT_ONCE: u32 = 8;

/// `out = matrix` transposed, a thread for each element. A warp reads 32 neighbours of a row, and writes a column.
///
/// # Safety
///
/// `matrix` has `rows` x `cols` elements, `out` as many. Blocks have 32 x 8 threads.
#[kernel]
pub unsafe fn transpose_directly(rows: u32, cols: u32, matrix: Global<f32>, out: GlobalMut<f32>) {
    let row = (thread::block_idx_y() * ROWS_AT_ONCE + thread::thread_idx_y()) as usize;
    let col = (thread::block_idx_x() * TILE + thread::thread_idx_x()) as usize;
    let (rows, cols) = (rows as usize, cols as usize);
    if row < rows && col < cols {
        // SAFETY: row and column exist.
        unsafe { out.store(col * rows + row, matrix.load(row * cols + col)) };
    }
}

/// `out = matrix` transposed, a block for each tile of 32 x 32 elements. A warp reads 32 neighbours of a row into the
/// tile, and later writes 32 neighbours of a row of `out`, which it reads from a column of the tile. Rows of the tile
/// are 32 + `PADDING` elements apart.
///
/// # Safety
///
/// `matrix` has `rows` x `cols` elements, `out` as many. Blocks have 32 x 8 threads. Dynamic shared memory has room for
/// the tile.
#[kernel(PADDING = [0, 1])]
pub unsafe fn transpose_by_tiles<const PADDING: u32>(
    rows: u32,
    cols: u32,
    matrix: Global<f32>,
    out: GlobalMut<f32>,
) {
    let tile = shared::dynamic_shared_mem::<f32>();
    let stride = (TILE + PADDING) as usize;
    let (rows, cols) = (rows as usize, cols as usize);
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let first_row = (thread::block_idx_y() * TILE) as usize;
    let first_col = (thread::block_idx_x() * TILE) as usize;
    // SAFETY: elements of both matrices are accessed only if they exist. Each thread writes its own elements of the
    // tile, and the barrier separates these writes from the reads of other threads.
    unsafe {
        for k in (0..TILE as usize).step_by(ROWS_AT_ONCE as usize) {
            let (row, col) = (first_row + y + k, first_col + x);
            if row < rows && col < cols {
                tile.store((y + k) * stride + x, matrix.load(row * cols + col));
            }
        }
        thread::sync_threads();
        for k in (0..TILE as usize).step_by(ROWS_AT_ONCE as usize) {
            let (row, col) = (first_row + x, first_col + y + k);
            if row < rows && col < cols {
                out.store(col * rows + row, tile.load(x * stride + y + k));
            }
        }
    }
}
