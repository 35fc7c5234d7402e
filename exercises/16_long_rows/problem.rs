//! # 16: A few long rows
//!
//! Real matrices often have many short rows and a few long ones: the web pages that everybody links to. With one thread
//! or one warp for each row, most of the GPU waits for the long rows:
//!
//! ```text
//! warp 0   ############################################   a row of 300 nonzeros
//! warp 1   #
//! warp 2   ##
//! ```
//!
//! The unit of work can be the nonzero instead. The matrix here also has `row_idx`, the row of each nonzero. `y` holds
//! zeros before the launch.
//!
//! Your task: no warp makes more than twice as many requests as the mean. You also choose the launch: change `blocks`
//! if you need another grid.
//!
//! The file as delivered fails: its busiest warp makes 9 "times as many requests as the mean; the maximum is 2".

use cuda_std::prelude::*;

/// Threads of a block.
pub const BLOCK: u32 = 128;

/// Blocks of the launch.
pub fn blocks(rows: u32, _nonzeros: u32) -> u32 {
    rows.div_ceil(BLOCK)
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
    let row = thread::index_1d() as usize;
    if row >= a.rows as usize {
        return;
    }
    // SAFETY: `row` is less than `a.rows`, so `row_ptr` has the elements `row` and `row + 1`, and `y` has `row`.
    unsafe {
        let mut sum = 0.0;
        for k in a.row_ptr.load(row) as usize..a.row_ptr.load(row + 1) as usize {
            sum += a.values.load(k) * x.load(a.col_idx.load(k) as usize);
        }
        y.store(row, sum);
    }
}
