//! A warp multiplies a run of nonzeros, then adds up the products of each row by a segmented scan: for few features.
//!
//! Changes from `vector`: there, a sub-warp of 8 lanes takes one nonzero after the other. With one feature, seven of
//! its lanes would idle. Here a nonzero has only as many lanes as its row of X has vectors, one for up to four
//! features. The groups of lanes take consecutive nonzeros, wherever the rows end:
//!
//! ```text
//! 1 feature, rows of 3, 2 and 5 nonzeros:    group   0  1  2    3  4    5  6  7  8  9
//! products                                          p0 p1 p2 | p3 p4 | p5 p6 p7 p8 p9
//! row sums                                           y0         y1      y2
//! ```
//!
//! Each lane loads eight columns and values, coalesced, and gathers its elements of X. A segmented scan costs the same
//! for rows of all lengths; where a row has the whole chunk, the lanes add in registers. Neighbouring groups write
//! neighbouring rows of Y.
//!
//! A nonzero costs its column (4 B), its value, and a sector of X (32 B) from the L2 cache if the L1 cache lacks it.
//! Parts of split rows are joined by the warp that stores the last one: a product is one launch, with the same bits in
//! every run. Tasks are as in merge path (Merrill and Garland, SC 2016).

mod chunk;
mod walk;

use crate::product::lane_groups::{self, LaneGroups};
use crate::product::reduction::{Greatest, Reducer, Reduction, Total};
use crate::product::scaling::Scaling;
use crate::product::split_rows;
use crate::{EpilogueKind, ItemKind, Items, LaunchShape};
pub use chunk::LOADS;
use chunk::bytes_of_warp;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use walk::Walk;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

/// What it does, in one line.
pub const SUMMARY: &str = "for few features: a warp multiplies a run of nonzeros into shared memory, then adds up its rows";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::Vector);

/// It wants a task for each warp.
pub const ITEMS: ItemKind = ItemKind::WarpTasks;

/// It takes maxima and minima too.
pub const HAS_EXTREMA: bool = true;

/// The most features for which it is the default.
pub const MAX_FEATURES: u32 = 16;

/// Warps in a block. They share nothing.
const WARPS: u32 = 4;

/// Neighbouring features that a lane has: the most of which `multiple` is one, the number of features or
/// [that of a shape](LaunchShape::vector_multiple).
pub(in crate::product) fn width<T: Operand>(multiple: u32, reduction: Reduction) -> u32 {
    let widths: &[u32] = match (reduction.is_extremum(), size_of::<T>()) {
        (true, _) => &[1],
        (false, 4) => &[4, 2, 1],
        (false, 8) => &[2, 1],
        (false, _) => &[4, 1],
    };
    let fits = |width: &&u32| multiple.is_multiple_of(**width);
    *widths.iter().find(fits).unwrap_or(&1)
}

/// Nonzeros that a warp takes at a time, for so many features of packed X and Y.
pub fn nonzeros_of_chunk<T: Operand>(features: u32, reduction: Reduction) -> u32 {
    let width = width::<T>(features, reduction);
    WARP_SIZE / lane_groups::lanes(features, width) * LOADS as u32
}

/// A warp for each task.
pub fn launch<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    _: EpilogueKind,
) -> LaunchConfig {
    let width = width::<T>(shape.vector_multiple(), reduction);
    let bytes = WARPS * bytes_of_warp::<T::Sum>(width);
    LaunchConfig::new(shape.items.div_ceil(WARPS), WARPS * WARP_SIZE).shared_bytes(bytes)
}

/// The handle of the kernel for the shape's variant.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    _: EpilogueKind,
) -> Kernel<crate::GeneralArguments<T>> {
    match width::<T>(shape.vector_multiple(), reduction) {
        _ if reduction.is_extremum() => narrow_max::<T, 1>(),
        1 => narrow::<T, 1>(),
        2 => narrow::<T, 2>(),
        _ => narrow::<T, 4>(),
    }
}

/// `Y[row, j] = alpha * sum of A[row, col] * X[col, j] + beta * Y[row, j]`, a warp for a task.
///
/// A nonzero costs a warp its column (4 B), its value and its row of X, and a product that is written to shared memory
/// and read from there once.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1
/// and a multiple of `WIDTH`, as are the strides and the places where X and Y start; strides are below 4 GiB; X and Y
/// are apart from each other; y holds numbers if beta is not 0; `items` are tasks, with two rows of partial sums for
/// each and a number of arrivals, which is 0.
#[kernel(
    name = "spmm_narrow",
    T = [f32, f64, f16, bf16], WIDTH = [1];
    T = [f32, f64], WIDTH = [2];
    T = [f32, f16, bf16], WIDTH = [4]
)]
pub unsafe fn narrow<T: Operand, const WIDTH: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    scaling: Scaling<SumOf<T>>,
) {
    // SAFETY: `reduce_rows` wants what this kernel wants.
    unsafe { reduce_rows::<T, Total, WIDTH>(a, x, y, items, scaling) };
}

/// As [`narrow`], with the greatest product of a row in the place of the sum.
///
/// # Safety
///
/// That of [`narrow`].
#[kernel(name = "spmm_narrow_max", T = [f32, f64, f16, bf16], WIDTH = [1])]
pub unsafe fn narrow_max<T: Operand, const WIDTH: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    scaling: Scaling<SumOf<T>>,
) {
    // SAFETY: `reduce_rows` wants what this kernel wants.
    unsafe { reduce_rows::<T, Greatest, WIDTH>(a, x, y, items, scaling) };
}

/// The task of a warp, one tile of features after the other; then the split rows whose last part it has stored.
///
/// # Safety
///
/// The contract of the kernel that calls it.
#[inline(always)]
unsafe fn reduce_rows<T: Operand, R: Reducer, const WIDTH: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    scaling: Scaling<SumOf<T>>,
) {
    let warp_in_block = thread::thread_idx_x() / WARP_SIZE;
    let task = thread::block_idx_x() * WARPS + warp_in_block;
    if task >= items.count {
        return;
    }
    let groups = LaneGroups::new(x.cols, WIDTH as u32);
    let bytes = bytes_of_warp::<T::Sum>(WIDTH as u32);
    let room = shared::dynamic_shared_mem().offset_bytes(warp_in_block * bytes);
    // SAFETY: the task is one of the items, all lanes of its warp are here, and the products are this warp's alone.
    unsafe {
        let (mut first_feature, mut has_parts) = (0, false);
        while first_feature < x.cols as usize {
            let mut walk = Walk::<T, R, WIDTH>::start(
                (&a, &x, &y),
                (&items, &scaling),
                (groups, room),
                (task, first_feature),
            );
            walk.stream();
            has_parts = walk.store_parts();
            first_feature += groups.lanes() as usize * WIDTH;
        }
        if has_parts {
            split_rows::finish::<T, R, WIDTH, 1>((&a, &y), (&items, &scaling), groups, task);
        }
    }
}
