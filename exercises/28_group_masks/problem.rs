//! # 28: Masks of groups
//!
//! A group of eight lanes computes a row of Y with 8 features, a lane for each feature. All eight need the same
//! nonzeros. So each lane loads one nonzero of eight, and then passes it to the other lanes by shuffles:
//!
//! ```text
//! lane of the group     0   1   2   3   4   5   6   7
//! loads nonzero         0   1   2   3   4   5   6   7      one coalesced request for four groups
//! then for s in 0..8    all eight get nonzero s from lane s, and add value * x[col, lane]
//! ```
//!
//! A warp has four groups, and each has its own row. The shuffles are in the loop over the row. Rows have different
//! lengths, so groups leave the loop at different times. A shuffle waits for all lanes of its mask.
//!
//! Your task: give the shuffles the right mask.
//!
//! The file as delivered fails with a mask "which names lane" 8. That lane belongs to another group, which has left the
//! loop.

use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

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

/// `Y = A X` for 8 features, eight lanes for each row.
///
/// # Safety
///
/// The pointers of `a` hold as many elements as its fields say; each column is a row of `x`. `x` and `y` have rows of
/// 8 elements; `y` has `a.rows` rows. Blocks have whole warps.
#[kernel]
pub unsafe fn spmm_by_groups(a: Csr, x: Global<f32>, y: GlobalMut<f32>) {
    let row = (thread::index_1d() / 8) as usize;
    if row >= a.rows as usize {
        return;
    }
    let lane = (warp::lane_id() % 8) as usize;
    let mask = FULL_MASK;
    // SAFETY: `row` is less than `a.rows`, so it has nonzeros, whose columns are rows of `x`, and a row of `y`.
    unsafe {
        let start = a.row_ptr.load(row) as usize;
        let end = a.row_ptr.load(row + 1) as usize;
        let mut sum = 0.0;
        for first in (start..end).step_by(8) {
            let k = first + lane;
            let (my_col, my_value) = if k < end {
                (a.col_idx.load(k), a.values.load(k))
            } else {
                (0, 0.0)
            };
            for source in 0..(end - first).min(8) as u32 {
                let col = warp::shfl_idx(mask, my_col, source, 8) as usize;
                let value = warp::shfl_idx(mask, my_value, source, 8);
                sum += value * x.load(8 * col + lane);
            }
        }
        y.store(8 * row + lane, sum);
    }
}
