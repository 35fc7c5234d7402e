//! A lane has four neighbouring features, which one instruction loads.

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

/// `Y = A X` for 32 features, eight lanes for each row.
///
/// # Safety
///
/// The pointers of `a` hold as many elements as its fields say; each column is a row of `x`. `x` and `y` have rows of
/// 32 elements and start at multiples of 16 bytes; `y` has `a.rows` rows. Blocks have 128 threads.
#[kernel]
pub unsafe fn spmm(a: Csr, x: Global<f32>, y: GlobalMut<f32>) {
    let row = (thread::index_1d() / 8) as usize;
    if row >= a.rows as usize {
        return;
    }
    let lane = thread::thread_idx_x() as usize % 8;
    // SAFETY: `row` is less than `a.rows`, so it has nonzeros, whose columns are rows of `x`, and a row of `y`.
    unsafe {
        let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        let mut sums = [0.0; 4];
        for k in start as usize..end as usize {
            let (col, value) = (a.col_idx.load(k) as usize, a.values.load(k));
            let element = x.load4(32 * col + 4 * lane);
            for j in 0..4 {
                sums[j] += value * element[j];
            }
        }
        y.store4(32 * row + 4 * lane, sums);
    }
}
