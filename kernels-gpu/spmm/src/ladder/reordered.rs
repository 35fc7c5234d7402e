//! Row split over rows in another order: neighbouring warps read the same rows of X.
//!
//! The kernel is that of `warp_per_row`. The plan places rows that share columns next to each other and copies the
//! matrix in that order (the option `order`; default: rows are sorted by their first column). The kernel writes each
//! row to its original place in Y. X and Y keep the caller's order.
//!
//! A nonzero costs a warp its column (4 bytes), its value, and 32 neighbouring elements of X. A row costs 4 more bytes
//! for its place in Y.
//!
//! New against `warp_per_row`: rows that run at the same time find each other's rows of X in the L1 cache of their
//! multiprocessor, or at least in the L2 cache.
//!
//! Where it loses: the gain depends on the matrix. It is large where the matrix has communities and its rows are
//! shuffled, and zero where neighbours are random (R-MAT). A good given order can be made worse. The plan sorts the
//! rows and copies the matrix.
//!
//! Every kernel runs on every order; this rung gives the idea a name.
//!
//! Source: a course report on SpMM, which sorts the rows by the column of their first nonzero.

use crate::ladder::warp_per_row;
use crate::{ItemKind, LaunchShape};
use cuda_std::prelude::*;

/// What it does, in one line.
pub const SUMMARY: &str = "row split over rows in the order of their first columns";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::WarpPerRow);

/// Its units of work: rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// A warp for each row and tile of features.
pub fn launch<T: Real>(shape: LaunchShape) -> LaunchConfig {
    warp_per_row::launch::<T>(shape)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: LaunchShape) -> Kernel<crate::PlainArguments<T>> {
    warp_per_row::warp_per_row::<T>()
}
