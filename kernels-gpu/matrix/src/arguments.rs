//! Matrices as kernel arguments: sizes and device pointers, passed by value.

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
#[derive(KernelParam)]
pub struct Csr<T> {
    /// The number of rows.
    pub rows: u32,
    /// The number of columns.
    pub cols: u32,
    /// Row r has the nonzeros `row_ptr[r]..row_ptr[r + 1]`; `rows + 1` numbers.
    pub row_ptr: Global<u32>,
    /// The column of each nonzero.
    pub col_idx: Global<u32>,
    /// The value of each nonzero.
    pub values: Global<T>,
}

/// A row-major dense matrix that a kernel reads.
#[repr(C)]
#[derive(KernelParam)]
pub struct Dense<T> {
    /// The number of rows.
    pub rows: u32,
    /// The number of columns.
    pub cols: u32,
    /// The leading dimension: elements from the start of a row to the start of the next one, at least `cols`.
    pub stride: u32,
    /// The first element of the first row.
    pub data: Global<T>,
}

/// A row-major dense matrix that a kernel writes.
#[repr(C)]
#[derive(KernelParam)]
pub struct DenseMut<T> {
    /// The number of rows.
    pub rows: u32,
    /// The number of columns.
    pub cols: u32,
    /// The leading dimension: elements from the start of a row to the start of the next one, at least `cols`.
    pub stride: u32,
    /// The first element of the first row.
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
    )*};
}
argument!(Csr, Dense, DenseMut);

macro_rules! packed {
    ($($matrix:ident: $pointer:ident),*) => {$(
        impl<T> $matrix<T> {
            /// A matrix whose rows follow each other without a gap.
            pub const fn packed(rows: u32, cols: u32, data: $pointer<T>) -> Self {
                Self {
                    rows,
                    cols,
                    stride: cols,
                    data,
                }
            }
        }
    )*};
}
packed!(Dense: Global, DenseMut: GlobalMut);

macro_rules! cast_to_sum {
    ($($matrix:ident),*) => {$(
        #[cfg(not(target_arch = "nvptx64"))]
        impl<T: Operand> $matrix<T> {
            /// The same matrix with elements of type `T::Sum`, for a kernel that only takes such
            /// elements.
            ///
            /// # Panics
            ///
            /// If `T` is not `T::Sum`.
            pub fn cast_to_sum(self) -> $matrix<T::Sum> {
                assert_eq!(T::NAME, T::Sum::NAME, "the type of the elements and of the sums");
                $matrix {
                    rows: self.rows,
                    cols: self.cols,
                    stride: self.stride,
                    data: self.data.cast(),
                }
            }
        }
    )*};
}
cast_to_sum!(Dense, DenseMut);
