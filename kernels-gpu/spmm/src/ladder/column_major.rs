//! One thread multiplies one nonzero, and the nonzeros are sorted by column.
//!
//! Kernel, launch and work per thread are those of `thread_per_nonzero`. Only the order of the nonzeros is new; the
//! plan makes it. It is the order of a matrix in CSC.
//!
//! A nonzero costs its row, its column (4 bytes each) and its value once. For every feature it costs an element of X,
//! which lanes with the same column share, and an atomic addition to an element of Y.
//!
//! Why it helps: the lanes of a warp have one column, or a few. They read the same row of X, with one load where there
//! were up to 32, and the next warp finds that row in the cache.
//!
//! Where it loses: the plan sorts the nonzeros and copies columns and values in the new order. In row order, lanes of a
//! warp added to the same row of Y; now they add to as many rows as they have nonzeros. On large matrices with short
//! rows and many features the scattered additions can cost more than the loads save.
//!
//! Source: a step of a course report on SpMM, which does not say whether a thread or a warp takes a nonzero there.

use crate::ladder::thread_per_nonzero;
use crate::{ItemKind, Items, LaunchShape};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str =
    "one thread a nonzero in column order, for rows of X that are read together";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::ThreadPerNonzero);

/// Its units of work: nonzeros, sorted by column.
pub const ITEMS: ItemKind = ItemKind::NonzerosByColumn;

/// One thread for each nonzero.
pub fn launch<T: Real>(shape: LaunchShape) -> LaunchConfig {
    thread_per_nonzero::launch::<T>(shape)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: LaunchShape) -> Kernel<crate::PlainArguments<T>> {
    column_major::<T>()
}

/// `Y[row, j] += A[row, col] * X[col, j]`, one thread for each nonzero, sorted by column.
///
/// A nonzero costs its row and its column (4 bytes each) and its value once. For every feature it costs an element of
/// X, which lanes with the same column share, and an atomic addition to an element of Y.
///
/// # Safety
///
/// The pointers of A, X and Y hold as many elements as their shapes say; no column of A is `a.cols` or more. X is
/// `a.cols` x n, Y is `a.rows` x n, and Y overlaps no input. The columns and values of A and the rows in `items` are in
/// the same order; `a.row_ptr` is not read.
#[kernel(name = "spmm_column_major", T = [f32])]
pub unsafe fn column_major<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    // SAFETY: the caller keeps the kernel's contract, and `items` is in the order of A's columns and values.
    unsafe { thread_per_nonzero::add_nonzero(&a, &x, &y, &items) }
}
