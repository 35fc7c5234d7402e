//! A slice of W in shared memory: some rows and 16 columns, padded with zeros.

use crate::BLOCK;
use cuda_std::prelude::*;
use warprow_kernels_matrix::Dense;

/// Columns of a slice.
pub(crate) const TILE: u32 = 16;

/// Copies `height` rows of W from row `first` on, and 16 columns from `column` on. Elements outside of W are zero.
///
/// # Safety
///
/// All threads of a block of [`BLOCK`] call it, and `slice` has room for `height` times 16 elements. A barrier
/// separates the call from earlier and later uses of the slice.
#[inline(always)]
pub(crate) unsafe fn load<T: Real>(
    w: &Dense<T>,
    first: u32,
    height: u32,
    column: u32,
    slice: Shared<T>,
) {
    let mut i = thread::thread_idx_x();
    while i < height * TILE {
        let (k, j) = (first + i / TILE, column + i % TILE);
        let mut weight = T::ZERO;
        // SAFETY: `k < w.rows` and `j < w.cols`, checked here; `i < height * TILE`, and no other thread has this `i`.
        unsafe {
            if k < w.rows && j < w.cols {
                weight = w.data.load(k as usize * w.cols as usize + j as usize);
            }
            slice.store(i as usize, weight);
        }
        i += BLOCK;
    }
}
