//! What is done to a sum before it is written: a bias added, negative ones set to zero.

use cuda_std::prelude::*;
use warprow_kernels_matrix::Operand;

/// Bias and ReLU, as a kernel gets them.
#[repr(C)]
#[derive(KernelParam)]
pub struct Epilogue<T> {
    /// A number for each column of Y.
    pub bias: Global<T>,
    /// Whether there is a bias: 0 or 1.
    pub has_bias: u32,
    /// Whether negative results become 0: 0 or 1. A NaN stays.
    pub relu: u32,
}

impl<T> Clone for Epilogue<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Epilogue<T> {}

impl<T: Operand> Epilogue<T> {
    /// The bias of two neighbouring columns; past the `cols` columns of Y that of the last one.
    ///
    /// # Safety
    ///
    /// There is a bias, of an element for each column, of which there is at least one.
    #[inline(always)]
    pub unsafe fn bias_of(&self, column: u32, cols: u32) -> [T::Sum; 2] {
        [column, column + 1].map(|column| {
            // SAFETY: the column is one of Y.
            unsafe { self.bias.load(column.min(cols - 1) as usize) }.widen()
        })
    }

    /// The element of Y in that column, of the sum of its products.
    ///
    /// # Safety
    ///
    /// The column is one of Y, and the bias, if there is one, has an element for each.
    #[inline(always)]
    pub unsafe fn apply(&self, sum: T::Sum, column: usize) -> T {
        let mut sum = sum;
        if self.has_bias != 0 {
            // SAFETY: the column is one of Y.
            sum += unsafe { self.bias.load(column) }.widen();
        }
        if self.relu != 0 && sum < T::Sum::ZERO {
            sum = T::Sum::ZERO;
        }
        T::narrow(sum)
    }
}
