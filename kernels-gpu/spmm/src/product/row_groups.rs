//! A group of 2 to 32 lanes computes a row, without shared memory: for few features.
//!
//! Changes from `vector`: there, at least 8 lanes take one nonzero after the other. With 8 features, six of them would
//! idle. Here a nonzero has only as many lanes as its row of X has vectors, and a group of lanes takes several nonzeros
//! of its row [at a time](crate::product::group_sum).
//!
//! At the row's end, shuffles add up the lanes' sums. The kernel needs no list of tasks, no shared memory and no split
//! rows. So a thread has few registers, many warps are resident, and a product is one launch. This is the vector kernel
//! of Bell and Garland (SC 2009, section 4.2), with several columns of X.
//!
//! A nonzero costs its column (4 B), its value, and its sectors of X (32 B each) from the L2 cache if the L1 cache
//! lacks them.
//!
//! When to use it: for 2 to 16 features, or 32 on small matrices, where rows have similar lengths. One group computes a
//! whole row, so a long row still runs when all other groups have ended; `row_bins` is for such rows.

use crate::product::group_sum::{self, width};
use crate::product::lane_columns::LaneColumns;
use crate::product::lane_groups::{self, LaneGroups};
use crate::product::reduction::{Reduction, Total};
use crate::product::row_epilogue::{LaneOutput, RowEpilogue};
use crate::product::scaling::Scaling;
use crate::{EpilogueKind, ItemKind, Items, LaunchShape};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

/// What it does, in one line.
pub const SUMMARY: &str =
    "for few features: a group of 2 to 32 lanes a row, each lane loads its own nonzeros";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::Vector);

/// It wants the rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// It takes sums and means only: `row_bins` takes maxima.
pub const HAS_EXTREMA: bool = false;

/// The sizes of groups, in lanes.
pub const GROUPS: [u32; 5] = [2, 4, 8, 16, 32];

/// Threads in a block.
pub const BLOCK: u32 = 128;

/// The lanes of a group: as many as asked for, or the next lower number, but no fewer than a nonzero has.
pub fn group(lanes_of_nonzero: u32, asked_for: u32) -> u32 {
    let asked_for = GROUPS.into_iter().rfind(|&lanes| lanes <= asked_for);
    asked_for.unwrap_or(GROUPS[0]).max(lanes_of_nonzero)
}

/// A group of `shape.lanes` lanes for each row, or as many as a nonzero has if these are more. Lanes of a group lie
/// along x, the groups of a block along y.
pub fn launch<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    _: EpilogueKind,
) -> LaunchConfig {
    let width = width::<T>(shape.vector_multiple(), reduction);
    let group = group(lane_groups::lanes(shape.features, width), shape.lanes);
    let rows = BLOCK / group;
    LaunchConfig::new(shape.items.div_ceil(rows), (group, rows))
}

/// The handle of the kernel for the shape's variant.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    _: EpilogueKind,
) -> Kernel<crate::GeneralArguments<T>> {
    match width::<T>(shape.vector_multiple(), reduction) {
        1 => row_groups::<T, 1>(),
        2 => row_groups::<T, 2>(),
        _ => row_groups::<T, 4>(),
    }
}

/// `Y[row, j] = alpha * sum of A[row, col] * X[col, j] + beta * Y[row, j]`, a group of lanes along x for a row.
///
/// A nonzero costs its group its column (4 B), its value and its row of X.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1
/// and a multiple of `WIDTH`, as are the strides and the places where X and Y start; strides are below 4 GiB; X and Y
/// are apart from each other; y holds numbers if beta is not 0; `items` are the rows. A block has 2, 4, 8, 16
/// or 32 threads along x, no fewer than a nonzero has lanes, and whole warps.
#[kernel(
    name = "spmm_row_groups",
    T = [f32, f64, f16, bf16], WIDTH = [1];
    T = [f32, f64], WIDTH = [2];
    T = [f32, f16, bf16], WIDTH = [4]
)]
pub unsafe fn row_groups<T: Operand, const WIDTH: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    scaling: Scaling<SumOf<T>>,
) {
    let row = thread::block_idx_x() * thread::block_dim_y() + thread::thread_idx_y();
    let has_row = row < items.count;
    let lanes = LaneGroups::new(x.cols, WIDTH as u32);
    let mut first_feature = 0;
    // SAFETY: the items are A's rows, whose columns are rows of X; only this group writes the row of Y.
    unsafe {
        let (start, end) = if has_row {
            (
                a.row_ptr.load(row as usize),
                a.row_ptr.load(row as usize + 1),
            )
        } else {
            // The group has to take part in the shuffles of its warp.
            (0, 0)
        };
        while first_feature < x.cols {
            let feature = first_feature + lanes.vector() * WIDTH as u32;
            let (threads, thread) = (thread::block_dim_x(), thread::thread_idx_x());
            let nonzeros_of_group = (lanes.of_lane(threads), lanes.of_lane(thread));
            let columns = LaneColumns::<T, 1, WIDTH, 1>::new(&x, feature as usize);
            let part = group_sum::of_lane::<T, Total, WIDTH, { group_sum::LOADS }>(
                (&a, columns),
                nonzeros_of_group,
                (start, end),
            );
            let sum = lane_groups::join::<T::Sum, Total, WIDTH>(lanes, threads, part);
            if has_row && thread < lanes.lanes() {
                let output = LaneOutput {
                    row: row as usize,
                    y: &y,
                    items: &items,
                    row_of_y: None,
                    feature,
                    features: x.cols,
                };
                RowEpilogue::<T>::write::<1, WIDTH, 1>(&scaling, output, [sum]);
            }
            first_feature += lanes.lanes() * WIDTH as u32;
        }
    }
}
