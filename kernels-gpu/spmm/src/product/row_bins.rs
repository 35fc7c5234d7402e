//! Rows in bins of similar length, a group of lanes for each row: for few features, and rows of any lengths.
//!
//! Changes from `row_groups`: there, all rows have groups of the same size, and neighbouring rows share a warp. So a
//! warp waits for its longest row, and the device for the longest row of all. Here the plan sorts the rows by length. A
//! bin has the rows whose groups have the same number of lanes: 32 for long rows, and for the shortest ones as many as
//! a nonzero has. Rows that are longer still are cut into parts, which have a warp each and come first:
//!
//! ```text
//! 8 features (2 lanes of 4), parts of 64 nonzeros:        rows of 1, 150, 40, 3, 9 and 70 nonzeros
//!
//! row                  1  1  1  5  5     2       4       3  0
//! nonzeros            64 64 22 64  6    40       9       3  1
//! lanes               32 32 32 32 32    32       8       2  2
//! ```
//!
//! The warp that stores the last part of a row joins its parts, in their order: a product is one launch, with the same
//! bits in every run. Bins of rows are those of ACSR (Ashari et al., "Fast Sparse Matrix-Vector Multiplication on GPUs
//! for Graph Applications", SC 2014, section III), with several columns of X.
//!
//! A nonzero costs its column (4 B), its value, and its sectors of X (32 B each) from the L2 cache if the L1 cache
//! lacks them. A row costs 16 B of the list of items, and neighbouring rows of A lose their place beside each other.
//!
//! When to use it: for 2 to 128 features, where rows have different lengths.

pub mod shared_x;

pub use crate::bins::BLOCK;
use crate::product::group_sum;
use crate::product::lane_columns::{LaneColumns, LaneVectors};
use crate::product::lane_groups::{self, LaneGroups};
use crate::product::reduction::{Greatest, Reducer, Reduction, Total};
use crate::product::row_epilogue::{LaneOutput, RowEpilogue};
use crate::product::row_parts::RowParts;
use crate::product::scaling::Scaling;
use crate::{EpilogueKind, ItemKind, Items, LaunchShape};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

/// What it does, in one line.
pub const SUMMARY: &str =
    "for few features: rows sorted into bins of similar length, whose groups of lanes suit them";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::RowGroups);

/// It wants the rows in their bins.
pub const ITEMS: ItemKind = ItemKind::RowBins;

/// It takes maxima and minima too.
pub const HAS_EXTREMA: bool = true;

/// The most features for which the cost model predicts it, and plans choose it.
pub const MAX_FEATURES: u32 = 128;

/// Numbers of an item in [`Items::row`]: the row of A, the nonzeros from which to which it goes, and the row of Y.
pub const NUMBERS_OF_ITEM: u32 = 4;

/// Maximum number of nonzeros of a lane: a row gets twice the lanes until each has fewer, or the group is a warp. A
/// batch of loads has four; where a nonzero has many lanes, the end of a row costs more than another batch.
fn nonzeros_of_lane(lanes_of_nonzero: u32) -> u32 {
    (2 * lanes_of_nonzero).clamp(4, 16)
}

/// The lanes of a group for rows of fewer than `below` nonzeros, a power of two.
pub fn group(lanes_of_nonzero: u32, below: u32) -> u32 {
    let nonzeros = below / nonzeros_of_lane(lanes_of_nonzero);
    let lanes = nonzeros.saturating_mul(lanes_of_nonzero);
    lanes.clamp(lanes_of_nonzero, WARP_SIZE)
}

/// Whether the lanes of a warp have all features of a row of X at once, where X and Y are packed.
pub fn has_one_tile<T: Operand>(features: u32, reduction: Reduction) -> bool {
    features <= WARP_SIZE * group_sum::width::<T>(features, reduction)
}

/// The lanes of a nonzero, for rows of X and Y as the shape says.
pub fn lanes_of_nonzero<T: Operand>(shape: LaunchShape, reduction: Reduction) -> u32 {
    let width = group_sum::width::<T>(shape.vector_multiple(), reduction);
    lane_groups::lanes(shape.features, width)
}

/// A block for each item of the shape: the [blocks of the bins](crate::RowBins::new).
pub fn launch<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    _: EpilogueKind,
) -> LaunchConfig {
    if shared_x::is_used(shape, reduction) {
        return shared_x::launch::<T>(shape);
    }
    LaunchConfig::new(shape.items, BLOCK)
}

/// The handle of the kernel for the shape's variant.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    _: EpilogueKind,
) -> Kernel<crate::GeneralArguments<T>> {
    if shared_x::is_used(shape, reduction) {
        return shared_x::handle::<T>(shape);
    }
    match group_sum::width::<T>(shape.vector_multiple(), reduction) {
        _ if reduction.is_extremum() => row_bins_max::<T, 1>(),
        1 => row_bins::<T, 1>(),
        2 => row_bins::<T, 2>(),
        _ => row_bins::<T, 4>(),
    }
}

/// `Y[row, j] = alpha * sum of A[row, col] * X[col, j] + beta * Y[row, j]`, a group of lanes for a row, or for a part
/// of a long one.
///
/// A nonzero costs its group its column (4 B), its value and its row of X.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1
/// and a multiple of `WIDTH`, as are the strides and the places where X and Y start; strides are below 4 GiB; X and Y
/// are apart from each other; y holds numbers if beta is not 0; `items` are A's rows in bins, for the lanes that a
/// nonzero has, fewer than 2^32 - 128. Rows of more than `items.task_size` nonzeros, a power of two, are cut into parts
/// of so many, which are all in the bin of 32 lanes. There is room for the sums of all parts, and a number of arrivals
/// for each, which is 0.
#[kernel(
    name = "spmm_row_bins",
    T = [f32], WIDTH = [1, 2], registers = 40;
    T = [f16, bf16], WIDTH = [1], registers = 40;
    T = [f32], WIDTH = [4], registers_sm90 = 40;
    T = [f16, bf16], WIDTH = [4];
    T = [f64], WIDTH = [1, 2]
)]
pub unsafe fn row_bins<T: Operand, const WIDTH: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    scaling: Scaling<SumOf<T>>,
) {
    // SAFETY: `reduce_row` wants what this kernel wants.
    unsafe {
        let columns = |feature: u32| LaneColumns::<T, 1, WIDTH, 1>::new(&x, feature as usize);
        let (block, thread) = (thread::block_idx_x(), thread::thread_idx_x());
        reduce_row::<T, Total, WIDTH, { group_sum::LOADS }, _>(
            a,
            (x.cols, columns),
            y,
            items,
            scaling,
            (block, thread),
        );
    };
}

/// As [`row_bins`], with the greatest product of a row in the place of the sum.
///
/// # Safety
///
/// That of [`row_bins`].
#[kernel(
    name = "spmm_row_bins_max",
    T = [f32, f16, bf16], WIDTH = [1], registers = 40;
    T = [f64], WIDTH = [1]
)]
pub unsafe fn row_bins_max<T: Operand, const WIDTH: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    scaling: Scaling<SumOf<T>>,
) {
    // SAFETY: `reduce_row` wants what this kernel wants.
    unsafe {
        let columns = |feature: u32| LaneColumns::<T, 1, WIDTH, 1>::new(&x, feature as usize);
        let (block, thread) = (thread::block_idx_x(), thread::thread_idx_x());
        reduce_row::<T, Greatest, WIDTH, { group_sum::LOADS }, _>(
            a,
            (x.cols, columns),
            y,
            items,
            scaling,
            (block, thread),
        );
    };
}

/// The row of the lane's group, or a part of it; then the row whose last part the warp has stored. `x` has the number
/// of features, and where a lane loads its columns of X from a feature on. The thread is one of a block of [`BLOCK`].
///
/// # Safety
///
/// The contract of the kernel that calls it. All lanes of the warp call it, with neighbouring threads of the same
/// block.
#[inline(always)]
unsafe fn reduce_row<
    T: Operand,
    R: Reducer,
    const WIDTH: usize,
    const COUNT: usize,
    V: LaneVectors<T>,
>(
    a: Csr<SumOf<T>>,
    (features, columns): (u32, impl Fn(u32) -> V),
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    scaling: Scaling<SumOf<T>>,
    (block, thread): (u32, u32),
) {
    let bin = items.bins.of_block(block);
    let lanes = LaneGroups::new(features, WIDTH as u32);
    let lane = thread & (bin.lanes() - 1);
    let item = bin.item(thread);
    // All groups take part in the shuffles of their warp.
    let has_item = item < bin.end;
    // SAFETY: the item has four numbers, which name a row of A, some of its nonzeros, and the row of Y; no other group
    // has the item. A part has its own row of partial sums; its warp arrives after it has stored them.
    unsafe {
        let [_, start, end, _] = if has_item {
            numbers(&items, item)
        } else {
            [0; NUMBERS_OF_ITEM as usize]
        };
        let mut first_feature = 0;
        while first_feature < features {
            let feature = first_feature + lanes.vector() * WIDTH as u32;
            let nonzeros_of_group = (lanes.of_lane(bin.lanes()), lanes.of_lane(lane));
            let part = group_sum::of_lane::<T, R, WIDTH, COUNT>(
                (&a, columns(feature)),
                nonzeros_of_group,
                (start, end),
            );
            let mut sum = lane_groups::join::<T::Sum, R, WIDTH>(lanes, bin.lanes(), part);
            if has_item && lane < lanes.lanes() {
                if item < items.bins.parts {
                    if feature < features {
                        let index = item as usize * features as usize + feature as usize;
                        T::Sum::store(items.partial, index, sum);
                    }
                } else {
                    // Loaded again, so that no register holds them meanwhile.
                    let [row, start, end, row_of_y] = numbers(&items, thread::opaque(item));
                    if R::MINDS_EMPTY_ROWS && start == end {
                        sum = [T::Sum::ZERO; WIDTH];
                    }
                    let output = LaneOutput {
                        row: row as usize,
                        y: &y,
                        items: &items,
                        row_of_y: Some(row_of_y),
                        feature,
                        features,
                    };
                    RowEpilogue::<T>::write::<1, WIDTH, 1>(&scaling, output, [sum]);
                }
            }
            first_feature += lanes.lanes() * WIDTH as u32;
        }
        // A part has a warp.
        if item < items.bins.parts {
            let [row, start, _, row_of_y] = numbers(&items, thread::opaque(item));
            let row_start = a.row_ptr.load(row as usize);
            let nonzeros = a.row_ptr.load(row as usize + 1) - row_start;
            let shift = items.task_size.trailing_zeros();
            let first = item - ((start - row_start) >> shift);
            let parts = RowParts {
                row,
                row_of_y: Some(row_of_y),
                counter: first,
                count: ((nonzeros - 1) >> shift) + 1,
                index: |k| (first + k) as usize,
            };
            if parts.arrive(&items) {
                parts.join::<T, R, WIDTH>(&y, &items, &scaling, lanes);
            }
        }
    }
}

/// The numbers of an item.
///
/// # Safety
///
/// It is one of the items, whose numbers begin at a multiple of 16 bytes.
#[inline(always)]
unsafe fn numbers<S>(items: &Items<S>, item: u32) -> [u32; NUMBERS_OF_ITEM as usize] {
    // SAFETY: the list has four numbers for each item.
    unsafe { items.row.load4(item as usize * NUMBERS_OF_ITEM as usize) }
}
