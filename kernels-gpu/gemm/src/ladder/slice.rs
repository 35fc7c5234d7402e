//! A slice of W in shared memory: some rows and 16 columns, filled up with zeros.

use crate::BLOCK;
use cuda_std::prelude::*;
use warprow_kernels_matrix::Dense;

/// Columns of a slice.
pub(crate) const TILE: u32 = 16;

/// Copies `height` rows of W from row `first` on, and 16 columns from `column` on; what lies outside of W is zero.
///
/// # Safety
///
/// All threads of a block of [`BLOCK`] call it; `slice` has room; a barrier comes before anyone else touches it and after
/// the last use of what was there.
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
        // SAFETY: an element of W, and one of the slice that is this thread's.
        unsafe {
            if k < w.rows && j < w.cols {
                weight = w.data.load(k as usize * w.cols as usize + j as usize);
            }
            slice.store(i as usize, weight);
        }
        i += BLOCK;
    }
}
