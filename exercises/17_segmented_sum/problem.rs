//! # 17: A segmented sum
//!
//! One thread for each nonzero balances the work, but each product costs an atomic addition. The nonzeros of a row lie
//! side by side, so neighbouring lanes often add to the same element. They can add up their products first:
//!
//! ```text
//! lane      0   1   2   3   4   5   6
//! row       7   7   7   8   8  10  10
//! product   a   b   c   d   e   f   g
//! step 1    a  a+b b+c  d  d+e  f  f+g      add the lane 1 below, if it has the same row
//! step 2    a  a+b abc  d  d+e  f  f+g      add the lane 2 below, if it has the same row
//!                   ^        ^       ^      the last lane of each row adds to y
//! ```
//!
//! A row may start in one warp and end in another one, so the additions to y stay atomic.
//!
//! Your task: at most one atomic addition for each row in each warp.
//!
//! The file as delivered fails with several thousand "atomic operations on global memory; the maximum is 1200".

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// A sparse matrix: its nonzeros, row by row.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct Matrix {
    /// Number of nonzeros.
    pub nonzeros: u32,
    /// The row of each nonzero.
    pub row_idx: Global<u32>,
    /// The column of each nonzero.
    pub col_idx: Global<u32>,
    /// The value of each nonzero.
    pub values: Global<f32>,
}

/// `y = A x`, one thread for each nonzero.
///
/// # Safety
///
/// The pointers of `a` hold as many elements as its fields say; each column is one of `x`. `y` holds a zero for each
/// row. Blocks have whole warps.
#[kernel]
pub unsafe fn spmv_segmented(a: Matrix, x: Global<f32>, y: GlobalMut<f32>) {
    let k = thread::index_1d() as usize;
    if k >= a.nonzeros as usize {
        return;
    }
    // SAFETY: `k` is less than the number of nonzeros. Threads add to the same element of `y` by atomic operations.
    unsafe {
        let product = a.values.load(k) * x.load(a.col_idx.load(k) as usize);
        y.reduce_add(Scope::Device, a.row_idx.load(k) as usize, product);
    }
}
