//! A slice of W in shared memory, column by column.

use crate::TensorCoreElement;
use crate::product::fragments::{BLOCK, COLS, STEP_BYTES};
use cuda_std::prelude::*;
use warprow_kernels_matrix::Dense;

/// Some rows and columns of W in shared memory, column by column, from which lanes load strips.
pub(crate) struct WeightSlice<'a, T> {
    /// W in global memory, row-major.
    pub w: &'a Dense<T>,
    /// Room for the slice.
    pub memory: Shared<u32>,
    /// Bytes from one column to the next in shared memory.
    pub stride: u32,
    /// Steps of the slice; a step is [`STEP_BYTES`] of a column.
    pub steps: u32,
    /// The slice's first column of W.
    pub column: u32,
}

impl<E: TensorCoreElement> WeightSlice<'_, E> {
    /// Copies the [`COLS`] columns of the slice that starts at step `first`. Elements outside of W are zero.
    ///
    /// # Safety
    ///
    /// All threads of the block call it, and `memory` has room for `COLS * stride` bytes. Barriers separate the call
    /// from earlier and later uses of the slice.
    #[inline(always)]
    pub unsafe fn load(&self, first: u32) {
        let per_step = STEP_BYTES / size_of::<E>() as u32;
        let zero = E::narrow(E::Sum::ZERO);
        let mut i = thread::thread_idx_x();
        while i < self.steps * per_step * COLS {
            let (k, j) = (i / COLS, i % COLS);
            let (row, column) = (first * per_step + k, self.column + j);
            // SAFETY: `row < w.rows` and `column < w.cols`, checked here; `k` is in the column and `j < COLS`, so the
            // element is in the slice, and no other thread has this `i`.
            unsafe {
                let mut weight = zero;
                if row < self.w.rows && column < self.w.cols {
                    let index = row as usize * self.w.cols as usize + column as usize;
                    weight = self.w.data.load(index);
                }
                let memory = self.memory.offset_bytes(j * self.stride).cast::<E>();
                memory.store(k as usize, weight);
            }
            i += BLOCK;
        }
    }

    /// The lane's strip of its column of a fragment of 8 columns, in that step of the slice.
    ///
    /// # Safety
    ///
    /// The slice is written; it has the fragment and the step.
    #[inline(always)]
    pub unsafe fn strip(&self, fragment: u32, step: u32) -> [u32; 4] {
        let lane = warp::lane_id();
        let offset = (8 * fragment + lane / 4) * self.stride + step * STEP_BYTES + lane % 4 * 16;
        // SAFETY: the slice has column `8 * fragment + lane / 4` and 64 bytes of this step in it, by the contract.
        E::prepare(unsafe { self.memory.offset_bytes(offset).load4(0) })
    }
}
