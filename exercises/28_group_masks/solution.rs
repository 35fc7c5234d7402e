//! The mask has the eight lanes of the group, which leave the loop together.

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
    let mask = 0xff << (warp::lane_id() / 8 * 8);
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
