//! # 11: One warp for each row
//!
//! With one thread for each row, the lanes of a warp read nonzeros that are far apart, and the longest of 32 rows holds
//! up the others. If a warp computes a row, its lanes read neighbouring nonzeros:
//!
//! ```text
//! nonzeros of the row    0 1 2 ... 31  32 33 ... 63  64 65 66
//! lane                   0 1 2 ... 31   0  1 ... 31   0  1  2
//! ```
//!
//! Each lane adds up the products of its nonzeros. At the end the warp adds up the 32 partial sums, as in exercise 06.
//!
//! Here a block has four warps and computes four rows. In the kernel as delivered, lane 0 does all the work.
//!
//! Your task: share the nonzeros of a row among the 32 lanes. On average over all loads, at least 20 lanes are active.
//!
//! The file as delivered fails with few "active lanes per load request; the minimum is 20".

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
        if lane == 0 {
            for k in start..end {
                sum += a.values.load(k) * x.load(a.col_idx.load(k) as usize);
            }
            y.store(row, sum);
        }
    }
}
