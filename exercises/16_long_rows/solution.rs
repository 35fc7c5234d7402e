//! One thread for each nonzero; atomic additions join the products of a row.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// Threads of a block.
pub const BLOCK: u32 = 128;

/// Blocks of the launch.
pub fn blocks(_rows: u32, nonzeros: u32) -> u32 {
    nonzeros.div_ceil(BLOCK).max(1)
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
    let k = thread::index_1d() as usize;
    if k >= a.nonzeros as usize {
        return;
    }
    // SAFETY: `k` is less than the number of nonzeros. Threads add to the same element of `y` by atomic operations.
    unsafe {
        let product = a.values.load(k) * x.load(a.col_idx.load(k) as usize);
        let row = a.row_idx.load(k) as usize;
        y.reduce_add(Scope::Device, row, product);
    }
}
