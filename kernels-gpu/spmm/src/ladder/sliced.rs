//! Slices: a warp for each 32 nonzeros of a row, the sums of cut rows by atomic addition.
//!
//! Changes from `warp_per_row`: rows are cut into [slices] of at most 32 nonzeros (the option `task_size`),
//! and a warp has a slice, not a row. A row of a million nonzeros is then work for 31,250 warps, which may run anywhere.
//! Rows of one slice are written as before; those of more have their sums added to Y by `red.global.add`, and are set to
//! zero first, they alone, by a small kernel.
//!
//! What it costs: a warp reads its slice's row and start (8 B) and then the row pointers, one after the other, before it can
//! begin; and each slice of a cut row is 32 atomic additions to neighbouring elements where there was one store a row. The
//! order of the additions, and with it the last bits of the result, are the chance of a run:
//! [`sliced_two_pass`](crate::ladder::sliced_two_pass) is the same every time.

use crate::{ItemKind, Items, Shape};
use crate::ladder::slices;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// What it does, in one line.
pub const SUMMARY: &str = "one warp for each 32 nonzeros of a row, cut rows added up by atomics";

/// It wants slices.
pub const ITEMS: ItemKind = ItemKind::Slices;

/// A warp for each slice and tile of features.
pub fn launch<T: Real>(shape: Shape) -> LaunchConfig {
    slices::launch_product(shape.items, shape.features)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: Shape) -> Kernel<crate::Arguments<T>> {
    sliced::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a warp for a slice of the row and 32 features.
///
/// A nonzero costs a warp its column (4 B), its value, and 32 neighbouring elements of X.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1,
/// apart from each other, the rows of `y` that are cut zero; `items` are slices. Blocks have 128 threads.
#[kernel(name = "spmm_sliced", T = [f32, f64])]
pub unsafe fn sliced<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    // SAFETY: the kernel's contract; a whole row is this warp's alone.
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
