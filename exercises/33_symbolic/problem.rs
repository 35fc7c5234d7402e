//! # 33: The size of a sparse product
//!
//! C = A B is sparse if A and B are. Row i of C is a sum of rows of B, one for each nonzero of row i of A. Before a
//! kernel can write C, it must know how many nonzeros each row has. This is the symbolic phase of SpGEMM:
//!
//! ```text
//! row i of A     columns 2, 7
//! row 2 of B     columns 0, 4, 9
//! row 7 of B     columns 4, 5, 9        5 products, but row i of C has the columns 0, 4, 5, 9: 4 nonzeros
//! ```
//!
//! A warp takes a row of C. For each nonzero of its row of A, the lanes go through a row of B. The kernel as delivered
//! counts the products. This number is too large if a column occurs several times.
//!
//! Your task: count each column once. Use a hash table in shared memory (exercise 32), one for each warp. The test
//! matrices have at most 200 different columns in a row of C, so a table of 256 slots is large enough.
//!
//! The file as delivered fails with "lengths[1] is" and a number that is too large.

use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// The structure of a sparse matrix in CSR.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct Structure {
    /// Number of rows.
    pub rows: u32,
    /// For each row its first nonzero, and at last the number of all nonzeros.
    pub row_ptr: Global<u32>,
    /// The column of each nonzero.
    pub col_idx: Global<u32>,
}

/// `lengths[row]` = the number of nonzeros of the row of `A B`, one warp for each row.
///
/// # Safety
///
/// The pointers of `a` and `b` hold as many elements as their fields say; each column of `a` is a row of `b`. A row of
/// the product has at most 256 nonzeros. `lengths` holds `a.rows` elements. Blocks have 64 threads.
#[kernel]
pub unsafe fn row_lengths(a: Structure, b: Structure, lengths: GlobalMut<u32>) {
    let row = (thread::index_1d() / 32) as usize;
    if row >= a.rows as usize {
        return;
    }
    let lane = warp::lane_id() as usize;
    // SAFETY: `row` is less than `a.rows`, and columns of `a` are rows of `b`.
    unsafe {
        let mut count = 0;
        for k in a.row_ptr.load(row)..a.row_ptr.load(row + 1) {
            let of_b = a.col_idx.load(k as usize) as usize;
            let (start, end) = (
                b.row_ptr.load(of_b) as usize,
                b.row_ptr.load(of_b + 1) as usize,
            );
            for j in (start + lane..end).step_by(32) {
                let _column = b.col_idx.load(j);
                count += 1;
            }
        }
        let count = warp::reduce_add(FULL_MASK, count);
        if lane == 0 {
            lengths.store(row, count);
        }
    }
}
