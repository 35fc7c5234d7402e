//! Each lane adds by an atomic load and an atomic store, but others can add between the two.

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
        let row = a.row_idx.load(k) as usize;
        let sum = y.atomic_load(Scope::Device, row);
        y.atomic_store(Scope::Device, row, sum + product);
    }
}
