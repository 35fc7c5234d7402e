//! # 10: A sparse matrix times a vector
//!
//! A sparse matrix stores its nonzeros alone. In the format CSR, the nonzeros lie row by row, each with its column and
//! its value. `row_ptr` says where each row starts; its last element is the number of nonzeros:
//!
//! ```text
//! matrix      5 . 1       row_ptr    0   2   2   3     row 1 is empty
//!             . . .       col_idx    0 2 1
//!             . 7 .       values     5 1 7
//! ```
//!
//! An argument of a kernel can be a struct of numbers and pointers, here `Csr`.
//!
//! Your task: compute `y = A x` with one thread for each row.
//!
//! The file as delivered adds up nothing. It fails with "y[0] is 0, wanted is" and another number.

use cuda_std::prelude::*;

/// A sparse matrix in CSR.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct Csr {
    /// Number of rows.
    pub rows: u32,
    /// For each row its first nonzero, and at last the number of all nonzeros.
    pub row_ptr: Global<u32>,
    /// The column of each nonzero.
    pub col_idx: Global<u32>,
    /// The value of each nonzero.
    pub values: Global<f32>,
}

/// `y = A x`, one thread for each row.
///
/// # Safety
///
/// The pointers of `a` hold as many elements as its fields say; each column is one of `x`. `y` holds `a.rows` elements.
#[kernel]
pub unsafe fn spmv(a: Csr, x: Global<f32>, y: GlobalMut<f32>) {
    let row = thread::index_1d() as usize;
    if row >= a.rows as usize {
        return;
    }
    // SAFETY: `row` is less than `a.rows`, so `row_ptr` has the elements `row` and `row + 1`, and `y` has `row`.
    unsafe {
        let (start, end) = (
            a.row_ptr.load(row) as usize,
            a.row_ptr.load(row + 1) as usize,
        );
        let sum = 0.0;
        // Add up the products of the nonzeros from `start` to before `end`.
        y.store(row, sum);
    }
}
