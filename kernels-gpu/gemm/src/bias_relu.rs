//! The epilogue of XW: it adds a bias to a sum and sets negative results to zero.

use cuda_std::prelude::*;
use warprow_kernels_matrix::Operand;

/// Bias and ReLU, as a kernel argument.
#[repr(C)]
#[derive(KernelParam)]
pub struct BiasRelu<T> {
    /// One element for each column of Y, if there is a bias.
    pub bias: Global<T>,
    /// Whether there is a bias: 0 or 1.
    pub has_bias: u32,
    /// Whether negative results become 0: 0 or 1. A NaN stays.
    pub relu: u32,
}

impl<T> Clone for BiasRelu<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for BiasRelu<T> {}

impl<T: Operand> BiasRelu<T> {
    /// The bias of columns `column` and `column + 1`. A column past the `cols` columns of Y gets the bias of the last.
    ///
    /// # Safety
    ///
    /// There is a bias of `cols` elements, and `cols` is at least 1.
    #[inline(always)]
    pub unsafe fn bias_of(&self, column: u32, cols: u32) -> [T::Sum; 2] {
        [column, column + 1].map(|column| {
            // SAFETY: the index is at most `cols - 1`.
            unsafe { self.bias.load(column.min(cols - 1) as usize) }.widen()
        })
    }

    /// The bias of a column; 0 if there is none.
    ///
    /// # Safety
    ///
    /// `column` is a column of Y, and the bias, if there is one, has an element for each column.
    #[inline(always)]
    pub unsafe fn bias_at(&self, column: u32) -> T::Sum {
        if self.has_bias == 0 {
            return T::Sum::ZERO;
        }
        // SAFETY: there is a bias, and it has an element for each column of Y by the contract.
        unsafe { self.bias.load(column as usize) }.widen()
    }

    /// The element of Y whose sum of products is `sum` and whose bias is `bias`, [0 if there is none](Self::bias_at):
    /// bias, then ReLU, then rounding to `T`.
    #[inline(always)]
    pub fn finish(&self, sum: T::Sum, bias: T::Sum) -> T {
        let mut sum = sum;
        if self.has_bias != 0 {
            sum += bias;
        }
        self.activate(sum)
    }

    /// As [`finish`](Self::finish), with the bias of column `column`.
    ///
    /// # Safety
    ///
    /// That of [`bias_at`](Self::bias_at).
    #[inline(always)]
    pub unsafe fn apply(&self, sum: T::Sum, column: usize) -> T {
        let mut sum = sum;
        if self.has_bias != 0 {
            // SAFETY: there is a bias, and it has an element for each column of Y by the contract.
            sum += unsafe { self.bias.load(column) }.widen();
        }
        self.activate(sum)
    }

    /// ReLU, then rounding to `T`.
    #[inline(always)]
    fn activate(&self, sum: T::Sum) -> T {
        let mut sum = sum;
        if self.relu != 0 && sum < T::Sum::ZERO {
            sum = T::Sum::ZERO;
        }
        T::narrow(sum)
    }
}
