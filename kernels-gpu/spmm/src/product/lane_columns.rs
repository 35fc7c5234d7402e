//! The columns of X that a lane loads from each row of X.

use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::Dense;
use warprow_kernels_matrix::Operand;

/// `PASSES` vectors of `WIDTH` neighbouring columns; each starts `LANES * WIDTH` after the one before.
#[derive(Clone, Copy)]
pub(crate) struct LaneColumns<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>
{
    /// Where they are in the first row of X, and the bytes from one row of X to the next.
    first_row: [Global<T>; PASSES],
    stride: u32,
}

impl<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>
    LaneColumns<T, LANES, WIDTH, PASSES>
{
    /// Those from `feature` on. Lanes past the last feature have the last ones.
    #[inline(always)]
    pub fn new(x: &Dense<T>, feature: usize) -> Self {
        let features = x.cols as usize;
        Self {
            first_row: array::from_fn(|pass| {
                let feature = feature + pass * (LANES as usize * WIDTH);
                let feature = feature.min(features - WIDTH);
                if const { WIDTH == 1 } {
                    x.data.offset_rows(feature as u32, size_of::<T>() as u32)
                } else {
                    x.data.offset(feature)
                }
            }),
            stride: x.stride * size_of::<T>() as u32,
        }
    }

    /// The elements of a row of X.
    ///
    /// # Safety
    ///
    /// X has that row; its columns and its stride are multiples of `WIDTH`, and it starts at a whole vector.
    #[inline(always)]
    pub unsafe fn load(&self, row: u32) -> [T::Vector; PASSES] {
        let stride = u64::from(row) * u64::from(self.stride);
        array::from_fn(|pass| {
            // One instruction less, and two registers more, which wider loads want themselves.
            let vector = if const { WIDTH == 1 } {
                self.first_row[pass].offset_rows(row, self.stride)
            } else {
                self.first_row[pass].offset_bytes(stride)
            };
            // SAFETY: the row is a row of X, and `new` has kept the last vector within it.
            unsafe { T::load::<WIDTH>(vector, 0) }
        })
    }
}
