//! There is no tile, so the stores of a warp are `rows` elements apart.

use cuda_std::prelude::*;

#[kernel]
pub unsafe fn transpose(rows: u32, cols: u32, matrix: Global<f32>, out: GlobalMut<f32>) {
    let (rows, cols) = (rows as usize, cols as usize);
    let col = thread::index_1d() as usize;
    let first_row = thread::block_idx_y() as usize * 32 + thread::thread_idx_y() as usize;
    for k in (0..32).step_by(8) {
        let row = first_row + k;
        if row < rows && col < cols {
            unsafe { out.store(col * rows + row, matrix.load(row * cols + col)) };
        }
    }
}
