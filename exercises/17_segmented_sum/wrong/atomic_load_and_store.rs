//! The load is atomic, and so is the store, but another warp can store between the two.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

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
    let lane = warp::lane_id();
    // SAFETY: `k` is less than the number of nonzeros where one is loaded. All lanes reach the shuffles. Threads add to
    // the same element of `y` by atomic operations.
    unsafe {
        // A lane without a nonzero has a row of its own, which is not in `y`.
        let (mut row, mut sum) = (u32::MAX, 0.0);
        if k < a.nonzeros as usize {
            row = a.row_idx.load(k);
            sum = a.values.load(k) * x.load(a.col_idx.load(k) as usize);
        }
        for step in [1, 2, 4, 8, 16] {
            let below = warp::shfl_up(FULL_MASK, sum, step, WARP_SIZE);
            let row_below = warp::shfl_up(FULL_MASK, row, step, WARP_SIZE);
            if lane >= step && row_below == row {
                sum += below;
            }
        }
        let next_row = warp::shfl_down(FULL_MASK, row, 1, WARP_SIZE);
        let is_last = lane == WARP_SIZE - 1 || next_row != row;
        if is_last && row != u32::MAX {
            let old = y.atomic_load(Scope::Device, row as usize);
            y.atomic_store(Scope::Device, row as usize, old + sum);
        }
    }
}
