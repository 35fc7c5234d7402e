//! One thread a nonzero, the nonzeros in the order of their columns.
//!
//! The kernel is that of `thread_per_nonzero`, and so are its launch and its cost; only the order of the nonzeros has
//! changed, which the plan makes. The threads of a warp now have the same column, or a few: they read the same row of X
//! together, a load where there were 32, and the next warp finds it in the cache. It is the order of a matrix in CSC.
//!
//! What it costs: a sort in the plan, and a copy of A's columns and values in the new order. The writes gain nothing: in
//! row order the neighbours in a warp added to the same row of Y, now to as many rows as they are. A report of people who
//! tuned SpMM for graphs lists this step after that of `warp_per_nonzero`, with 37.5 ms after 121.5 (576,289 rows, 42
//! million nonzeros, 32 features); which of the two kernels had the new order it does not say.
//!
//! Measured on an NVIDIA H200, f32: 1.1 to 2.3 times as fast as `thread_per_nonzero`, but 0.85 times on a large graph of short rows
//! with 128 features.

use crate::{ItemKind, Items, Shape};
use crate::ladder::thread_per_nonzero;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use cuda_std::prelude::*;

/// What it does, in one line.
pub const SUMMARY: &str =
    "one thread a nonzero in column order, for rows of X that are read together";

/// It wants nonzeros in column order.
pub const ITEMS: ItemKind = ItemKind::NonzerosByColumn;

/// A thread a nonzero.
pub fn launch<T: Real>(shape: Shape) -> LaunchConfig {
    thread_per_nonzero::launch::<T>(shape)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: Shape) -> Kernel<crate::Arguments<T>> {
    column_major::<T>()
}

/// `Y[row, j] += A[row, col] * X[col, j]`, a thread a nonzero, columns ascending.
///
/// A nonzero costs its row and its column (4 B each) and its value once, and for every feature an element of X that the
/// neighbours of the same column share, and an atomic addition to one of Y in its own 32-byte sector.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, apart from each
/// other. The columns and values of A and the rows in `items` are in the same order; `a.row_ptr` is not read.
#[kernel(name = "spmm_column_major", T = [f32, f64])]
pub unsafe fn column_major<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    // SAFETY: the kernel's contract.
    unsafe { thread_per_nonzero::add_nonzero(&a, &x, &y, &items) }
}
