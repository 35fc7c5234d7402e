//! A group of 2 to 32 lanes computes a row, without shared memory: for few features.
//!
//! Changes from `narrow`: there, a warp's products go through shared memory, and a segmented scan finds the sums of the
//! rows. That costs the same for rows of all lengths, but more than the products themselves. Here a group keeps the
//! sums of its row in registers. Within the group, a nonzero has as many lanes as its row of X has vectors:
//!
//! ```text
//! 8 features (2 lanes of 4), groups of 8 lanes, a row of 7 nonzeros
//!
//! lane                 0 1   2 3   4 5   6 7
//! nonzeros              0     1     2     3      loaded together, four rounds at a time
//!                       4     5     6     -
//! ```
//!
//! At the row's end, shuffles add up the lanes' sums. The kernel needs no list of tasks, no shared memory and no split
//! rows. So a thread has few registers, many warps are resident, and a product is one launch. This is the vector kernel
//! of Bell and Garland (SC 2009, section 4.2), with several columns of X.
//!
//! A nonzero costs its column (4 B), its value, and its sectors of X (32 B each) from the L2 cache if the L1 cache
//! lacks them.
//!
//! When to use it: for 2 to 16 features, or 32 on small matrices, where no row is much longer than the others. One
//! group computes a whole row, so a long row still runs when all other groups have ended.

use crate::product::lane_columns::LaneColumns;
use crate::product::lane_groups::{self, LaneGroups};
use crate::product::narrow::width;
use crate::product::reduction::{Reducer, Reduction, Total};
use crate::product::row_epilogue::{LaneOutput, RowEpilogue};
use crate::product::scaling::Scaling;
use crate::{EpilogueKind, ItemKind, Items, LaunchShape};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

/// What it does, in one line.
pub const SUMMARY: &str =
    "for few features: a group of 2 to 32 lanes a row, each lane loads its own nonzeros";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::Narrow);

/// It wants the rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// It takes sums and means only: `narrow` takes maxima.
pub const HAS_EXTREMA: bool = false;

/// The most features for which the cost model predicts it. Plans choose it for fewer.
pub const MAX_FEATURES: u32 = 64;

/// The sizes of groups, in lanes.
pub const GROUPS: [u32; 5] = [2, 4, 8, 16, 32];

/// Threads in a block.
pub const BLOCK: u32 = 128;

/// Nonzeros of a lane that are loaded together.
pub const LOADS: u32 = 4;

/// Whether a group has all features of a row of X at once, where X and Y are packed.
pub fn has_one_tile<T: Operand>(features: u32) -> bool {
    features <= WARP_SIZE * width::<T>(features, Reduction::Sum)
}

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
            let part = part_of_row::<T, WIDTH>(&a, &x, lanes, (start, end), feature);
            let sum = join_parts::<T::Sum, WIDTH>(lanes, part);
            if has_row && thread::thread_idx_x() < lanes.lanes() {
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

/// The lane's part of the sum of a row: of every nonzero that it loads, its vector of features from `feature` on.
///
/// # Safety
///
/// The nonzeros from `start` up to `end` are A's, whose columns are rows of X.
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
#[inline(always)]
unsafe fn part_of_row<T: Operand, const WIDTH: usize>(
    a: &Csr<T::Sum>,
    x: &Dense<T>,
    lanes: LaneGroups,
    (start, end): (u32, u32),
    feature: u32,
) -> [T::Sum; WIDTH] {
    const COUNT: usize = LOADS as usize;
    let x = LaneColumns::<T, 1, WIDTH, 1>::new(x, feature as usize);
    // Nonzeros that the group loads at a time, and this lane's among them.
    let step = lanes.of_lane(thread::block_dim_x());
    let first = lanes.of_lane(thread::thread_idx_x());
    let value_bytes = size_of::<T::Sum>() as u32;
    let mut sum = [Total::start(); WIDTH];
    if first >= end - start {
        return sum;
    }
    let mut position = start + first;
    loop {
        // The lane's nonzeros begin at `position`, and the row has so many from there on: at least one. A load past the
        // row's end loads its last nonzero again, whose bytes are there already, and the product is left out.
        let left = end - position;
        // SAFETY: the offsets from `position` are below `left`, so these are nonzeros of the row.
        unsafe {
            let nonzeros: [u32; COUNT] =
                array::from_fn(|i| position + (i as u32 * step).min(left - 1));
            let cols: [u32; COUNT] =
                array::from_fn(|i| a.col_idx.offset_rows(nonzeros[i], 4).load(0));
            let values: [T::Sum; COUNT] =
                array::from_fn(|i| a.values.offset_rows(nonzeros[i], value_bytes).load(0));
            let elements: [[T::Vector; 1]; COUNT] = array::from_fn(|i| x.load(cols[i]));
            for i in 0..COUNT {
                if i as u32 * step < left {
                    sum = array::from_fn(|k| {
                        Total::take(values[i], T::get(&elements[i][0], k), sum[k])
                    });
                }
            }
        }
        if left <= LOADS * step {
            return sum;
        }
        position += LOADS * step;
    }
}

/// Adds up the parts of the group's lanes that have the same features; all of them then have the sum. All lanes of the
/// warp call it.
#[inline(always)]
fn join_parts<S: Real, const WIDTH: usize>(lanes: LaneGroups, part: [S; WIDTH]) -> [S; WIDTH] {
    let mut sum = part;
    let mut distance = lanes.lanes();
    while distance < thread::block_dim_x() {
        sum = array::from_fn(|k| {
            let other = warp::shfl_xor(FULL_MASK, sum[k], distance, WARP_SIZE);
            Total::join(sum[k], other)
        });
        distance *= 2;
    }
    sum
}
