//! A warp for each row shares a long row among 32 lanes. That is not enough for the longest ones.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads of a block.
pub const BLOCK: u32 = 128;

/// Blocks of the launch.
pub fn blocks(rows: u32, _nonzeros: u32) -> u32 {
    rows.div_ceil(4)
}

/// A sparse matrix.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct Matrix {
    /// Number of rows.
    pub rows: u32,
    /// Number of nonzeros.
    pub nonzeros: u32,
    /// For each row its first nonzero, and at last the number of all nonzeros.
    pub row_ptr: Global<u32>,
    /// The row of each nonzero.
    pub row_idx: Global<u32>,
    /// The column of each nonzero.
    pub col_idx: Global<u32>,
    /// The value of each nonzero.
    pub values: Global<f32>,
}

/// `y = A x`.
///
/// # Safety
///
/// The pointers of `a` hold as many elements as its fields say; each column is one of `x`. `y` holds a zero for each
/// row.
#[kernel]
pub unsafe fn spmv_long_rows(a: Matrix, x: Global<f32>, y: GlobalMut<f32>) {
    let row = (thread::index_1d() / 32) as usize;
    if row >= a.rows as usize {
        return;
    }
    let lane = warp::lane_id() as usize;
    unsafe {
        let mut sum = 0.0;
        let mut k = a.row_ptr.load(row) as usize + lane;
        while k < a.row_ptr.load(row + 1) as usize {
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
