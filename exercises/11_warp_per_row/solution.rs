//! The lanes take every 32nd nonzero each, and add up their partial sums by shuffles.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

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

/// `y = A x`, one warp for each row.
///
/// # Safety
///
/// The pointers of `a` hold as many elements as its fields say; each column is one of `x`. `y` holds `a.rows` elements.
/// Blocks have 128 threads.
#[kernel]
pub unsafe fn spmv_by_warps(a: Csr, x: Global<f32>, y: GlobalMut<f32>) {
    let row = (thread::index_1d() / 32) as usize;
    if row >= a.rows as usize {
        return;
    }
    let lane = warp::lane_id() as usize;
    // SAFETY: `row` is less than `a.rows`, so `row_ptr` has the elements `row` and `row + 1`, and `y` has `row`. All
    // lanes of the warp have the same row, so all of them are here.
    unsafe {
        let (start, end) = (
            a.row_ptr.load(row) as usize,
            a.row_ptr.load(row + 1) as usize,
        );
        let mut sum = 0.0;
        let mut k = start + lane;
        while k < end {
            sum += a.values.load(k) * x.load(a.col_idx.load(k) as usize);
            k += 32;
        }
        for step in [16, 8, 4, 2, 1] {
            sum += warp::shfl_xor(FULL_MASK, sum, step, WARP_SIZE);
        }
        if lane == 0 {
            y.store(row, sum);
        }
    }
}
