//! Nobody writes the rows without nonzeros.

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
        let mut sum = 0.0;
        for k in start..end {
            sum += a.values.load(k) * x.load(a.col_idx.load(k) as usize);
        }
        if start < end {
            y.store(row, sum);
        }
    }
}
