//! Scaling, an epilogue of SpMM: `Y = alpha D R + beta Y`, with a diagonal matrix D and the rows' reductions R.

use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::Operand;

/// `Y = alpha D R + beta Y` for the rows' [reductions](crate::Reduction) R. The diagonal of D has a factor for each
/// row: for means, the reciprocal of its number of nonzeros.
///
/// As in BLAS, a zero factor hides its operand: Y is not read if beta is 0, and may hold anything; NaNs and infinities
/// in R do not count if alpha is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Scaling<S> {
    /// The factor of R.
    pub alpha: S,
    /// The factor of what Y holds.
    pub beta: S,
    /// The diagonal of D; null for the identity. It holds reciprocals, because a division costs a kernel 10 registers.
    pub diagonal: Global<S>,
}

impl<S: Real> Scaling<S> {
    /// The factor of a row's result.
    ///
    /// # Safety
    ///
    /// The diagonal has a number for the row, if there is one.
    #[inline(always)]
    pub unsafe fn factor(&self, row: usize) -> S {
        if self.diagonal.address() == 0 {
            self.alpha
        } else {
            // SAFETY: the diagonal has a number for the row, by this function's contract.
            self.alpha * unsafe { self.diagonal.load(row) }
        }
    }

    /// Writes `factor * results + beta * Y` to the `WIDTH` elements of Y from `index` on.
    ///
    /// # Safety
    ///
    /// As [`cuda_std::memory`] says; the address is a multiple of `WIDTH` elements; Y holds numbers if beta is not 0.
    #[inline(always)]
    pub unsafe fn write<T: Operand<Sum = S>, const WIDTH: usize>(
        &self,
        factor: S,
        results: [S; WIDTH],
        y: GlobalMut<T>,
        index: usize,
    ) {
        // The sum of an empty row is -0; adding 0 makes it 0.
        let scaled = |k: usize| {
            if self.alpha == S::ZERO {
                S::ZERO
            } else {
                factor.mul_add(results[k], S::ZERO)
            }
        };
        // SAFETY: the caller guarantees that Y has the elements, and that no other lane writes them.
        unsafe {
            if WIDTH < 8 {
                let old = if self.beta == S::ZERO {
                    T::ABSENT
                } else {
                    T::load_mut::<WIDTH>(y, index)
                };
                let add = |k| self.beta.mul_add(T::get(&old, k), scaled(k));
                T::store::<WIDTH>(y, index, array::from_fn(add));
                return;
            }
            let results: [S; WIDTH] = array::from_fn(scaled);
            if self.beta == S::ZERO {
                return T::store(y, index, results);
            }
            // Four elements of Y at a time; eight cost up to 14 registers more.
            let mut first = 0;
            while first < WIDTH {
                let old = T::load_mut::<4>(y, index + first);
                let add = |k| {
                    self.beta
                        .mul_add(T::get(&old, k), results[(first + k) % WIDTH])
                };
                T::store::<4>(y, index + first, array::from_fn(add));
                first += 4;
            }
        }
    }
}

/// Threads in a block of [`reciprocal_lengths`].
const BLOCK: u32 = 256;

/// The launch of [`reciprocal_lengths`], a thread a row.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK), BLOCK)
}

/// The diagonal of means: one over the number of each row's nonzeros, 1 for a row without.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `diagonal` room for `rows`.
#[kernel(name = "spmm_reciprocal_lengths", T = [f32, f64])]
pub unsafe fn reciprocal_lengths<T: Real>(rows: u32, row_ptr: Global<u32>, diagonal: GlobalMut<T>) {
    let row = thread::index_1d() as usize;
    if row < rows as usize {
        // SAFETY: `row < rows`, checked above; `row_ptr` has `rows + 1` numbers and `diagonal` has `rows`.
        unsafe {
            let length = row_ptr.load(row + 1) - row_ptr.load(row);
            diagonal.store(row, T::ONE / T::from_u32(length.max(1)));
        }
    }
}
