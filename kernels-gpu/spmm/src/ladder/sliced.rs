//! One warp computes a slice of a row, at most 32 nonzeros; atomic additions combine the slices of a row.
//!
//! The plan splits each row into [slices] of at most 32 nonzeros (the option `task_size`). A block has four warps and
//! four slices. A warp computes a tile of 32 features, one in each lane, as in `warp_per_row`. A row of one slice is
//! stored. The slices of a longer row are added to Y by `red.global.add`; a small kernel sets these rows to zero first.
//!
//! A nonzero costs a warp its column (4 bytes), its value, and 32 neighbouring elements of X. A slice costs its row and
//! its start (8 bytes) and up to 32 atomic additions to neighbouring elements.
//!
//! New against `warp_per_row`: no warp has more work than one slice. A row of a million nonzeros is work for 31,250
//! warps, which run on any multiprocessor. That pays where a few rows are very long.
//!
//! Where it loses: a warp loads its slice, then the row pointers, and only then the nonzeros; short rows notice the
//! extra latency. The order of the additions, and with it the last bits, changes from run to run.
//! [`sliced_two_pass`](crate::ladder::sliced_two_pass) has a fixed order.
//!
//! Source: slices of 32 nonzeros in a course report on SpMM.

use crate::ladder::slices;
use crate::{ItemKind, Items, LaunchShape};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str = "one warp for each 32 nonzeros of a row, split rows added up by atomics";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::WarpPerRow);

/// Its units of work: slices.
pub const ITEMS: ItemKind = ItemKind::Slices;

/// A warp for each slice and tile of features.
pub fn launch<T: Real>(shape: LaunchShape) -> LaunchConfig {
    slices::launch_product(shape.items, shape.features)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: LaunchShape) -> Kernel<crate::PlainArguments<T>> {
    sliced::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a warp for a slice of the row and 32 features.
///
/// A nonzero costs a warp its column (4 bytes), its value, and 32 neighbouring elements of X.
///
/// # Safety
///
/// The pointers of A, X and Y hold as many elements as their shapes say; no column of A is `a.cols` or more. X is
/// `a.cols` x n, Y is `a.rows` x n, n is at least 1, and Y overlaps no input, and its split rows are zero; `items`
/// are slices. Blocks have 128 threads.
#[kernel(name = "spmm_sliced", T = [f32])]
pub unsafe fn sliced<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    // SAFETY: the caller keeps the kernel's contract. Only this warp writes a row that is one slice; warps that share a
    // row add to it atomically.
    unsafe {
        slices::multiply(&a, &x, &items, |slice| {
            let place = slice.row * x.cols as usize + slice.feature;
            if slice.whole {
                y.data.store(place, slice.sum);
            } else {
                y.data.reduce_add(Scope::Device, place, slice.sum);
            }
        });
    }
}
