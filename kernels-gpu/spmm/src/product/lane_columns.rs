//! The columns of X that a lane loads from each row of X, from global or from shared memory.

use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::Dense;
use warprow_kernels_matrix::Operand;

/// A vector of neighbouring columns that a lane loads from rows of X.
pub(crate) trait LaneVectors<T: Operand>: Copy {
    /// The lane's vector of a row of X.
    ///
    /// # Safety
    ///
    /// X has that row, and may be read. Each row of X begins at a multiple of the vector's elements.
    unsafe fn vector(&self, row: u32) -> T::Vector;
}

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

impl<T: Operand, const WIDTH: usize> LaneVectors<T> for LaneColumns<T, 1, WIDTH, 1> {
    #[inline(always)]
    unsafe fn vector(&self, row: u32) -> T::Vector {
        // SAFETY: the caller's contract.
        let [vector] = unsafe { self.load(row) };
        vector
    }
}

/// A vector of `WIDTH` neighbouring columns of an X without gaps in shared memory.
#[derive(Clone, Copy)]
pub(crate) struct SharedColumns<T: Operand, const WIDTH: usize> {
    /// Where they are in the first row of X, and the bytes of a row.
    first_row: Shared<T>,
    row_bytes: u32,
}

impl<T: Operand, const WIDTH: usize> SharedColumns<T, WIDTH> {
    /// Those from `feature` on, of `features`. Lanes past the last feature have the last ones.
    #[inline(always)]
    pub fn new(x: Shared<T>, features: u32, feature: u32) -> Self {
        let feature = feature.min(features - WIDTH as u32);
        Self {
            first_row: x.offset(feature as usize),
            row_bytes: features * size_of::<T>() as u32,
        }
    }
}

impl<T: Operand, const WIDTH: usize> LaneVectors<T> for SharedColumns<T, WIDTH> {
    #[inline(always)]
    unsafe fn vector(&self, row: u32) -> T::Vector {
        let vector = self.first_row.offset_bytes(row * self.row_bytes);
        // SAFETY: the row is a row of X, which starts at a whole vector, and `new` has kept the vector within it.
        unsafe { T::load_shared::<WIDTH>(vector, 0) }
    }
}
