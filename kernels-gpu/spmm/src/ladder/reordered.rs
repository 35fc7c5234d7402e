//! Row split over rows in another order: neighbours that read the same rows of X.
//!
//! Changes from `warp_per_row`: none but the order of the rows. The plan puts rows that share columns next to each other (the
//! option `order`: by default rows are sorted by their first column) and makes the matrix in that order; the kernel
//! writes row i of it to the row of Y that the caller knows it by. X and Y stay as they are.
//!
//! Rows that run at the same time then find each other's rows of X in the cache of their multiprocessor, or at least in the
//! L2. What it can gain is a property of the matrix: much where it has communities and its rows are in no order, nothing where
//! neighbours are chance (R-MAT graphs), and it may lose where the given order was a good one.
//!
//! What it costs: 4 bytes a row to read its number, rows of Y written in no order (whole cache lines, if they have 32
//! features), and the plan's time: a sort of the rows, and a copy of the matrix.
//!
//! Every kernel runs on every order; this rung is the ladder's name for the idea.

use crate::{ItemKind, Shape};
use crate::ladder::warp_per_row;
use cuda_std::prelude::*;

/// What it does, in one line.
pub const SUMMARY: &str = "row split over rows in the order of their first columns";

/// It wants rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// A warp for each row and tile of features.
pub fn launch<T: Real>(shape: Shape) -> LaunchConfig {
    warp_per_row::launch::<T>(shape)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: Shape) -> Kernel<crate::Arguments<T>> {
    warp_per_row::warp_per_row::<T>()
}
