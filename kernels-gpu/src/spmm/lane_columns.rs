//! A lane's columns of X: what it loads of a row of X.

use super::element::Operand;
use super::row_end::passes;
use crate::matrix::Dense;
use core::array;
use cuda_std::prelude::*;

/// One or two vectors of `WIDTH` neighbouring columns, the second `LANES * WIDTH` further on.
#[derive(Clone, Copy)]
pub(super) struct LaneColumns<T: Operand, const LANES: u32, const WIDTH: usize> {
    /// Where they are in the first row of X, and the bytes from one row of X to the next.
    first_row: [Global<T>; 2],
    stride: u32,
}

impl<T: Operand, const LANES: u32, const WIDTH: usize> LaneColumns<T, LANES, WIDTH> {
    /// Vectors that a lane has.
    pub const PASSES: usize = passes(WIDTH as u32) as usize;

    /// Those from `feature` on. Lanes past the last feature have the last ones.
    #[inline(always)]
    pub fn new(x: &Dense<T>, feature: usize) -> Self {
        let features = x.cols as usize;
        Self {
            first_row: array::from_fn(|pass| {
                let feature = feature + pass * (LANES as usize * WIDTH);
                x.data.offset(feature.min(features - WIDTH))
            }),
            stride: x.cols * size_of::<T>() as u32,
        }
    }

    /// The elements of a row of X.
    ///
    /// # Safety
    ///
    /// X has that row, and its columns are a multiple of `WIDTH`.
    #[inline(always)]
    pub unsafe fn load(&self, row: u32) -> [T::Vector; 2] {
        let stride = u64::from(row) * u64::from(self.stride);
        array::from_fn(|pass| {
            if pass < Self::PASSES {
                // SAFETY: a column of X, a multiple of `WIDTH`.
                unsafe { T::load::<WIDTH>(self.first_row[pass].offset_bytes(stride), 0) }
            } else {
                T::ABSENT
            }
        })
    }
}
