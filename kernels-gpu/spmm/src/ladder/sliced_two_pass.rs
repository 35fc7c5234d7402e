//! One warp computes a slice of a row, at most 32 nonzeros; a second kernel adds up the slices of a row.
//!
//! Slices, blocks and lanes are those of `sliced`. A row of one slice is stored in Y. The partial sums of a longer row
//! go to a buffer, one row of sums for each slice. The second kernel ([`combine`](crate::ladder::slices::combine)) has
//! a block for each split row and 32 features. Its eight warps add every eighth slice each, and then add up their sums.
//!
//! A nonzero costs a warp its column (4 bytes), its value, and 32 neighbouring elements of X.
//!
//! New against `sliced`: the additions have a fixed order. There are no atomic additions, no row is set to zero first,
//! and the result has the same bits in every run.
//!
//! Where it loses: the partial sums are written and read once more. With slices of 32 nonzeros that adds a sixteenth to
//! the bytes that are read from X. A second launch adds its latency.
//!
//! Source: the usual answer to atomic additions; section 4.2 of Yang, Buluç and Owens (Euro-Par 2018) combines the
//! partial sums of merge-based SpMM in a second kernel, too.

use crate::ladder::slices;
use crate::{ItemKind, Items, LaunchShape};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str =
    "one warp for each 32 nonzeros of a row, split rows added up in a second pass";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::Sliced);

/// Its units of work: slices, with room for their partial sums.
pub const ITEMS: ItemKind = ItemKind::SlicesWithSums;

/// A warp for each slice and tile of features.
pub fn launch<T: Real>(shape: LaunchShape) -> LaunchConfig {
    slices::launch_product(shape.items, shape.features)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: LaunchShape) -> Kernel<crate::PlainArguments<T>> {
    sliced_two_pass::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]` for rows of one slice, and partial sums for the slices of other rows; a
/// warp for a slice and 32 features.
///
/// A nonzero costs a warp its column (4 bytes), its value, and 32 neighbouring elements of X.
///
/// # Safety
///
/// The pointers of A, X and Y hold as many elements as their shapes say; no column of A is `a.cols` or more. X is
/// `a.cols` x n, Y is `a.rows` x n, n is at least 1, and Y overlaps no input; `items` are slices, with room for their
/// partial sums if a row is split. Blocks have 128 threads.
#[kernel(name = "spmm_sliced_two_pass", T = [f32])]
pub unsafe fn sliced_two_pass<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    let features = x.cols as usize;
    // SAFETY: the caller keeps the kernel's contract. Only this warp writes a row that is one slice, and only this warp
    // has the row of partial sums with the slice's number.
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
