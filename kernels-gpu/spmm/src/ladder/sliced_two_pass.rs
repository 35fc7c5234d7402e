//! Slices with a second pass: the sums of cut rows written aside and added up in their order.
//!
//! Changes from `sliced`: the sum of a slice that is not a whole row goes to a row of its own in a buffer, and a second kernel
//! adds up each cut row's, always in the same order. No atomics, no zeros to be written first, and the same bits every time.
//!
//! What it costs: a row of sums for each slice, written and read once. With slices of 32 nonzeros that is a sixteenth of
//! what is read of X.

use crate::{ItemKind, Items, Shape};
use crate::ladder::slices;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use cuda_std::prelude::*;

/// What it does, in one line.
pub const SUMMARY: &str =
    "one warp for each 32 nonzeros of a row, cut rows added up in a second pass";

/// It wants slices, and room for their sums.
pub const ITEMS: ItemKind = ItemKind::SlicesWithSums;

/// A warp for each slice and tile of features.
pub fn launch<T: Real>(shape: Shape) -> LaunchConfig {
    slices::launch_product(shape.items, shape.features)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: Shape) -> Kernel<crate::Arguments<T>> {
    sliced_two_pass::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]` for rows of one slice, and the sums of the other rows' slices; a warp for a
/// slice and 32 features.
///
/// A nonzero costs a warp its column (4 B), its value, and 32 neighbouring elements of X.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1,
/// apart from each other; `items` are slices, with room for their sums if a row is cut. Blocks have 128 threads.
#[kernel(name = "spmm_sliced_two_pass", T = [f32, f64])]
pub unsafe fn sliced_two_pass<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    let features = x.cols as usize;
    // SAFETY: the kernel's contract; a whole row, and a slice's row of sums, are this warp's alone.
    unsafe {
        slices::multiply(&a, &x, &items, |slice| {
            let (matrix, row) = if slice.whole {
                (y.data, slice.row)
            } else {
                (items.partial, slice.number)
            };
            matrix.store(row * features + slice.feature, slice.sum);
        });
    }
}
