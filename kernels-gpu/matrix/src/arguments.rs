//! How matrices are passed to kernels: sizes and device pointers, by value.

#[cfg(not(target_arch = "nvptx64"))]
use crate::Operand;
use cuda_std::prelude::*;

/// A sparse matrix in compressed sparse row format (CSR).
///
/// ```text
///     0 1 2 3
/// 0 [ . a . b ]      row_ptr = [0, 2, 2, 3]
/// 1 [ . . . . ]      col_idx = [1, 3, 0]
/// 2 [ c . . . ]      values  = [a, b, c]
/// ```
#[repr(C)]
pub struct Csr<T> {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    /// Where each row starts in `col_idx` and `values`, and where the last one ends: `rows + 1` numbers.
    pub row_ptr: Global<u32>,
    /// The column of each nonzero.
    pub col_idx: Global<u32>,
    /// The value of each nonzero.
    pub values: Global<T>,
}

/// A dense matrix, row-major, that a kernel reads.
#[repr(C)]
pub struct Dense<T> {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    /// `rows * cols` elements.
    pub data: Global<T>,
}

/// A dense matrix, row-major, that a kernel writes.
#[repr(C)]
pub struct DenseMut<T> {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    /// `rows * cols` elements.
    pub data: GlobalMut<T>,
}

macro_rules! argument {
    ($($matrix:ident),*) => {$(
        impl<T> Clone for $matrix<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $matrix<T> {}

        // SAFETY: `repr(C)`, of scalars and device pointers, without padding: two u32 before 8-byte pointers.
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl<T: Element> KernelParam for $matrix<T> {}
    )*};
}
argument!(Csr, Dense, DenseMut);

macro_rules! of_sums {
    ($($matrix:ident),*) => {$(
        #[cfg(not(target_arch = "nvptx64"))]
        impl<T: Operand> $matrix<T> {
            /// The same matrix for a kernel of elements that are their own sums.
            ///
            /// # Panics
            ///
            /// If `T` is not the type of its sums.
            pub fn of_sums(self) -> $matrix<T::Sum> {
                assert_eq!(T::NAME, T::Sum::NAME, "the type of the elements and of the sums");
                $matrix {
                    rows: self.rows,
                    cols: self.cols,
                    data: self.data.cast(),
                }
            }
        }
    )*};
}
of_sums!(Dense, DenseMut);
