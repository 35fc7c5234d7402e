//! The naive kernel: one thread a row.
//!
//! The definition, written down: it is right, short, and where the ladder starts. Two things are wrong with it. The 32
//! threads of a warp read 32 different rows of X, so that each load instruction touches 32 cache lines where one or two
//! would do. And a warp lasts as long as its longest row, while the other lanes wait.

use crate::{ItemKind, Items, Shape};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use cuda_std::prelude::*;

/// What it does, in one line.
pub const SUMMARY: &str = "naive: one thread a row, feature after feature";

/// It wants rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// Threads in a block.
const BLOCK: u32 = 128;

/// A thread a row.
pub fn launch<T: Real>(shape: Shape) -> LaunchConfig {
    LaunchConfig::new(shape.rows.div_ceil(BLOCK), BLOCK)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: Shape) -> Kernel<crate::Arguments<T>> {
    thread_per_row::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a thread a row.
///
/// A thread walks its row of A once for every feature: a nonzero costs n times its column (4 B), its value and an
/// element of X, each in its own 32-byte sector.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, apart from each other.
#[kernel(name = "spmm_thread_per_row", T = [f32, f64])]
pub unsafe fn thread_per_row<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    let row = thread::index_1d() as usize;
    if row >= a.rows as usize {
        return;
    }
    let features = x.cols as usize;
    // SAFETY: `row` is a row of A and Y, and the columns of A are rows of X.
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
