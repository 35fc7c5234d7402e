//! W in shared memory, by columns.

use crate::Fragment;
use crate::product::fragments::{BLOCK, STEP_BYTES};
use cuda_std::prelude::*;
use warprow_kernels_matrix::Dense;

/// A slice of W in shared memory, by columns.
pub(crate) struct Weights<'a, T> {
    pub w: &'a Dense<T>,
    pub memory: Shared<u32>,
    /// Bytes from a column to the next.
    pub stride: u32,
    /// Steps of the slice.
    pub steps: u32,
    /// The first column.
    pub column: u32,
}

impl<E: Fragment> Weights<'_, E> {
    /// Copies the slice that starts at step `first`, `width` columns; what lies outside of W is zero.
    ///
    /// # Safety
    ///
    /// Nobody uses what was there; a barrier comes before anyone uses what will be.
    #[inline(always)]
    pub unsafe fn load(&self, first: u32, width: u32) {
        let per_step = STEP_BYTES / size_of::<E>() as u32;
        let zero = E::narrow(E::Sum::ZERO);
        let mut i = thread::thread_idx_x();
        while i < self.steps * per_step * width {
            let (k, j) = (i / width, i % width);
            let (row, column) = (first * per_step + k, self.column + j);
            // SAFETY: an element of W, and its place.
            unsafe {
                let mut weight = zero;
                if row < self.w.rows && column < self.w.cols {
                    let place = row as usize * self.w.cols as usize + column as usize;
                    weight = self.w.data.load(place);
                }
                let memory = self.memory.offset_bytes(j * self.stride).cast::<E>();
                memory.store(k as usize, weight);
            }
            i += BLOCK;
        }
    }

    /// The lane's strip of a column of the tile, in that step of the slice.
    ///
    /// # Safety
    ///
    /// The slice is written.
    #[inline(always)]
    pub unsafe fn strip(&self, tile: u32, step: u32) -> [u32; 4] {
        let lane = warp::lane_id();
        let place = (8 * tile + lane / 4) * self.stride + step * STEP_BYTES + lane % 4 * 16;
        // SAFETY: a strip of the slice.
        E::prepare(unsafe { self.memory.offset_bytes(place).load4(0) })
    }
}
