//! Sparse matrix times vector, for a matrix in CSR.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// A sparse matrix in CSR: the nonzeros of row `i` are those from `row_ptr[i]` to `row_ptr[i + 1]`.
#[derive(Clone, Copy, KernelParam)]
#[repr(C)]
pub struct Csr {
    /// The number of rows.
    pub rows: u32,
    /// Where each row starts, and where the last one ends.
    pub row_ptr: Global<u32>,
    /// The column of each nonzero.
    pub col_idx: Global<u32>,
    /// The value of each nonzero.
    pub values: Global<f32>,
}

/// `y = A x`, a thread for each row.
///
/// # Safety
///
/// The arrays of `a` are those of a matrix with `a.rows` rows. `x` holds an element for each of its columns, and `y`
/// one for each row.
#[kernel]
pub unsafe fn spmv_thread_per_row(a: Csr, x: Global<f32>, y: GlobalMut<f32>) {
    let row = thread::index_1d() as usize;
    if row < a.rows as usize {
        // SAFETY: the row exists, and so do its nonzeros and their columns.
        unsafe {
            let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
            let mut sum = 0.0;
            for k in start as usize..end as usize {
                let col = a.col_idx.load(k) as usize;
                sum = a.values.load(k).mul_add(x.load(col), sum);
            }
            y.store(row, sum);
        }
    }
}

/// `y = A x`, a warp for each row: lane l takes nonzeros l, l + 32, .. of the row.
///
/// # Safety
///
/// As for [`spmv_thread_per_row`]. Blocks have a multiple of 32 threads.
#[kernel]
pub unsafe fn spmv_warp_per_row(a: Csr, x: Global<f32>, y: GlobalMut<f32>) {
    let row = (thread::index_1d() / u64::from(WARP_SIZE)) as usize;
    if row < a.rows as usize {
        // SAFETY: as above. The lanes of a warp have one row, so all of them reach the shuffles.
        unsafe {
            let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
            let mut sum = 0.0;
            let mut k = (start + warp::lane_id()) as usize;
            while k < end as usize {
                let col = a.col_idx.load(k) as usize;
                sum = a.values.load(k).mul_add(x.load(col), sum);
                k += WARP_SIZE as usize;
            }
            for distance in [16, 8, 4, 2, 1] {
                sum += warp::shfl_xor(FULL_MASK, sum, distance, WARP_SIZE);
            }
            if warp::lane_id() == 0 {
                y.store(row, sum);
            }
        }
    }
}
