//! # 27: Sub-warps
//!
//! A row of X with 32 features has 128 bytes. A lane can load 16 bytes with one instruction, so eight lanes suffice for
//! the row. A warp then has four **sub-warps** of eight lanes, and works on four rows of A at a time:
//!
//! ```text
//! lanes       0 .. 7     8 .. 15    16 .. 23   24 .. 31
//! row of A    row 0      row 1      row 2      row 3
//! ```
//!
//! The kernel as delivered has the sub-warps. But each lane loads its four features one by one, 8 elements apart:
//!
//! ```text
//! feature     0  1  2  3  4  5  6  7  8  9 10 ..
//! lane        0  1  2  3  4  5  6  7  0  1  2 ..     four requests for each nonzero
//! wanted      0  0  0  0  1  1  1  1  2  2  2 ..     one request for each nonzero
//! ```
//!
//! Your task: let each lane load four neighbouring features at once, and store the same four.
//!
//! The file as delivered fails with too many "load requests to global memory; the maximum is 3000".

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
            for j in 0..4 {
                sums[j] += value * x.load(32 * col + lane + 8 * j);
            }
        }
        for j in 0..4 {
            y.store(32 * row + lane + 8 * j, sums[j]);
        }
    }
}
