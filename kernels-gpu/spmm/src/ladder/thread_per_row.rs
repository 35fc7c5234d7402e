//! Naive SpMM: one thread computes one row of Y. This is the root of the ladder.
//!
//! A block has 128 threads and 128 rows. A thread walks over the nonzeros of its row of A once for every feature, and
//! keeps the sum in a register. The lanes of a warp share no work.
//!
//! For every feature, a nonzero costs its column (4 bytes), its value and an element of X. Each lies in a 32-byte
//! sector of its own, because the 32 lanes read 32 different rows.
//!
//! It loses in two ways:
//!
//! - One load instruction of a warp touches up to 32 cache lines; coalesced lanes would touch one or two.
//! - A warp runs as long as its longest row, and the other lanes wait.
//!
//! Source: the scalar CSR kernel of Bell and Garland, "Efficient Sparse Matrix-Vector Multiplication on CUDA" (2008),
//! with a loop over the features.

use crate::{ItemKind, Items, LaunchShape};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str = "naive: one thread a row, feature after feature";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = None;

/// Its units of work: rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// Threads in a block.
const BLOCK: u32 = 128;

/// One thread for each row.
pub fn launch<T: Real>(shape: LaunchShape) -> LaunchConfig {
    LaunchConfig::new(shape.rows.div_ceil(BLOCK), BLOCK)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: LaunchShape) -> Kernel<crate::PlainArguments<T>> {
    thread_per_row::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, one thread for each row.
///
/// A thread walks its row of A once for every feature: a nonzero costs n times its column (4 bytes), its value and an
/// element of X, each in a 32-byte sector of its own.
///
/// # Safety
///
/// The pointers of A, X and Y hold as many elements as their shapes say; no column of A is `a.cols` or more. X is
/// `a.cols` x n, Y is `a.rows` x n, and Y overlaps no input.
#[kernel(name = "spmm_thread_per_row", T = [f32])]
pub unsafe fn thread_per_row<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    let row = thread::index_1d() as usize;
    if row >= a.rows as usize {
        return;
    }
    let features = x.cols as usize;
    // SAFETY: `row < a.rows`, checked above, so it has a place in `row_ptr` and a row in Y. A column of A is below
    // `a.cols`, the number of rows of X.
    unsafe {
        let row_of_y = items.row_of_y(row);
        let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        for feature in 0..features {
            let mut sum = T::ZERO;
            for k in start as usize..end as usize {
                let col = a.col_idx.load(k) as usize;
                sum = a
                    .values
                    .load(k)
                    .mul_add(x.data.load(col * features + feature), sum);
            }
            y.data.store(row_of_y * features + feature, sum);
        }
    }
}
