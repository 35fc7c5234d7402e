//! A block takes a run of nonzeros, a lane four consecutive ones; marks say where rows begin: for one feature.
//!
//! Changes from `row_groups`: there, a row has a group of lanes, whose loads depend on where the row begins, and a
//! short row leaves some of them idle. Here the lanes take the nonzeros as they lie, wherever rows end. The plan has
//! [marked](crate::plan::row_marks) the nonzeros with which rows begin, a bit each. So a lane finds the rows of its
//! nonzeros without a row pointer. It adds up its own products. It loads columns and values 16 bytes at a time, those
//! of the next chunk before it adds up the present one: a warp always waits for one access to memory.
//!
//! ```text
//! lanes of 4 nonzeros      0               1               2
//! products                 a  b  c  d      e  f  g  h      i  j  k  l
//! marks                    x     x               x                  x
//! sums of rows                ab              cdef               ghijk
//! goes on                        cd              gh                 l
//! ```
//!
//! A row that ends in another lane than it begins in is joined by a segmented scan over the lanes, and by one thread
//! over the warps of the block. A lane writes the rows that end in it. Rows without nonzeros have blocks of their own.
//!
//! A nonzero costs its column (4 B), its value, and a sector of X (32 B) from the L2 cache if the L1 cache lacks it; a
//! row costs its element of Y. A product is one launch, with the same bits in every run.

mod chunk;

use crate::product::lane_columns::LaneColumns;
use crate::product::lane_groups::LaneGroups;
use crate::product::reduction::{Reducer, Reduction, Total};
use crate::product::row_epilogue::{LaneOutput, RowEpilogue};
use crate::product::scaling::Scaling;
use crate::product::split_rows;
use crate::{EpilogueKind, ItemKind, Items, LaunchShape};
use chunk::{CHUNK, Chunk};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

/// What it does, in one line.
pub const SUMMARY: &str =
    "for one feature: a lane takes four consecutive nonzeros, and marks say where rows begin";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::RowGroups);

/// It wants a task for each block.
pub const ITEMS: ItemKind = ItemKind::BlockTasks;

/// It takes sums and means only.
pub const HAS_EXTREMA: bool = false;

/// Warps in a block.
pub const WARPS: u32 = 4;

/// Threads in a block.
pub const BLOCK: u32 = WARPS * WARP_SIZE;

/// Nonzeros that a block takes at a time.
pub const NONZEROS_OF_BLOCK: u32 = WARPS * CHUNK;

/// Rows without nonzeros that a block takes.
pub const EMPTY_ROWS_OF_BLOCK: u32 = 4 * BLOCK;

/// A block for each item: the tasks, and the groups of empty rows.
pub fn launch<T: Operand>(shape: LaunchShape, _: Reduction, _: EpilogueKind) -> LaunchConfig {
    LaunchConfig::new(shape.items, BLOCK)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Operand>(
    _: LaunchShape,
    _: Reduction,
    _: EpilogueKind,
) -> Kernel<crate::GeneralArguments<T>> {
    spmv::<T>()
}

/// `Y[row, j] = alpha * sum of A[row, col] * X[col, j] + beta * Y[row, j]`, a block for a task, one feature j after the
/// other.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; the columns and values of A start at multiples of 16
/// bytes; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1; strides are below 4 GiB; X and Y are apart from each
/// other; y holds numbers if beta is not 0; `items` are tasks with the marks of A, with two rows of partial sums for
/// each and a number of arrivals, which is 0.
#[kernel(name = "spmm_spmv", T = [f32, f64, f16, bf16])]
pub unsafe fn spmv<T: Operand>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    scaling: Scaling<SumOf<T>>,
) {
    let parts = WarpParts {
        head: shared_array!(T::Sum; WARPS as usize),
        tail: shared_array!(T::Sum; WARPS as usize),
        row: shared_array!(u32; WARPS as usize),
        has_start: shared_array!(u32; WARPS as usize),
    };
    let task = thread::block_idx_x();
    let mut feature = 0;
    // SAFETY: the block's item is a task or a group of empty rows. Parts of split rows are stored before the barrier
    // that `finish` follows.
    unsafe {
        if task >= items.marks.tasks {
            let first = (task - items.marks.tasks) * EMPTY_ROWS_OF_BLOCK;
            while feature < x.cols {
                write_empty_rows::<T>(first, &y, &items, &scaling, feature);
                feature += 1;
            }
            return;
        }
        let mut has_parts = false;
        while feature < x.cols {
            let elements = LaneColumns::new(&x, feature as usize);
            let of_warp = (task, feature);
            add_up::<T>((&a, elements, &y), (&items, &scaling), parts, of_warp);
            thread::sync_threads();
            has_parts = join::<T>(&y, (&items, &scaling), parts, of_warp);
            thread::sync_threads();
            feature += 1;
        }
        if has_parts && thread::thread_idx_x() < WARP_SIZE {
            let groups = LaneGroups::new(x.cols, 1);
            split_rows::finish::<T, Total, 1, 1>((&a, &y), (&items, &scaling), groups, task);
        }
    }
}

/// What the warps of a block leave to the thread that joins them, in shared memory, an element for each warp.
#[derive(Clone, Copy)]
struct WarpParts<S> {
    /// The part of the row that is open when the warp begins.
    head: Shared<S>,
    /// The part of the row that is open when it ends.
    tail: Shared<S>,
    /// That row of A, if it begins in the warp.
    row: Shared<u32>,
    /// Whether a row begins in the warp: else its tail is all that it has, and it has no head.
    has_start: Shared<u32>,
}

/// Writes the rows without nonzeros of a block, from number `first` of them on.
///
/// # Safety
///
/// The contract of the kernel.
#[inline(always)]
unsafe fn write_empty_rows<T: Operand>(
    first: u32,
    y: &DenseMut<T>,
    items: &Items<T::Sum>,
    scaling: &Scaling<T::Sum>,
    feature: u32,
) {
    let mut number = thread::thread_idx_x();
    while number < EMPTY_ROWS_OF_BLOCK && number < items.marks.empty_rows - first {
        // SAFETY: the list has so many rows of A, each once.
        unsafe {
            let row = items.marks.empty_row.load((first + number) as usize);
            write::<T>(row, y, items, scaling, feature, T::Sum::ZERO);
        }
        number += BLOCK;
    }
}

/// Writes an element of Y.
///
/// # Safety
///
/// The contract of the kernel; `row` is a row of A, and no other thread writes the element.
#[inline(always)]
unsafe fn write<T: Operand>(
    row: u32,
    y: &DenseMut<T>,
    items: &Items<T::Sum>,
    scaling: &Scaling<T::Sum>,
    feature: u32,
    sum: T::Sum,
) {
    let output = LaneOutput {
        row: row as usize,
        y,
        items,
        row_of_y: None,
        feature,
        features: y.cols,
    };
    // SAFETY: this function's contract.
    unsafe { RowEpilogue::<T>::write::<1, 1, 1>(scaling, output, [[sum]]) };
}

/// Whether an element of Y is alpha times the sum of its row: most products, which have a shorter way to Y.
#[inline(always)]
fn only_scales<S: Real>(items: &Items<S>, scaling: &Scaling<S>) -> bool {
    let has_same_rows = items.original_row.address() == 0 && scaling.diagonal.address() == 0;
    has_same_rows && scaling.beta == S::ZERO && scaling.alpha != S::ZERO
}

/// Writes the rows that begin in the warp and end in it, and leaves the rest to [`join`].
///
/// # Safety
///
/// The contract of the kernel. All lanes of the warp call it.
#[inline(always)]
unsafe fn add_up<T: Operand>(
    (a, x, y): (&Csr<T::Sum>, LaneColumns<T, 1, 1, 1>, &DenseMut<T>),
    (items, scaling): (&Items<T::Sum>, &Scaling<T::Sum>),
    parts: WarpParts<T::Sum>,
    (task, feature): (u32, u32),
) {
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    let only_scales = only_scales(items, scaling);
    let marks = items.marks.bits;
    // SAFETY: the task and the one after it have a start; each warp has a number of rows before it, and its own parts.
    // An open row that a mark ends is one of A's rows, and only this warp has its last nonzero.
    unsafe {
        let begin = items.start.load(task as usize);
        let end = items.start.load(task as usize + 1);
        let (mut number, end_number) = chunks_of_warp(begin, end, warp);
        // The number of the open row, among the rows that have nonzeros.
        let ordinal = items.marks.ordinal.load((task * WARPS + warp) as usize);
        let head_row = ordinal.wrapping_sub(1);
        let mut open_row = head_row;
        // The open row's sum, in the last lane.
        let mut open = Total::start();
        let column = y.data.offset_rows(feature, size_of::<T>() as u32);
        if number < end_number {
            let mut next = Chunk::new(number, begin, end).load(a, marks);
            while number < end_number {
                let (chunk, nonzeros) = (Chunk::new(number, begin, end), next);
                let elements = nonzeros.elements::<T>(x);
                number += 1;
                // The next chunk comes from memory while this one is added up.
                if number < end_number {
                    next = Chunk::new(number, begin, end).load(a, marks);
                }
                let (products, starts) = chunk.products::<T>(&nonzeros, &elements);
                let carry = warp::shfl_idx(FULL_MASK, open, WARP_SIZE - 1, WARP_SIZE);
                let sums = chunk::add_up::<T::Sum>(starts, &products, carry);
                open = sums.open;
                let row_starts = chunk::count(starts);
                // A lane writes the rows that end before its marks.
                let mut left = starts;
                let mut row = open_row.wrapping_add(row_starts.before);
                while left != 0 {
                    thread::keep_rolled();
                    let sum = sums.before(starts, left.trailing_zeros());
                    if row == head_row {
                        parts.head.store(warp as usize, sum);
                    } else {
                        let row = row_of(items, row);
                        if only_scales {
                            let y = column.offset_rows(row, y.stride * size_of::<T>() as u32);
                            T::store(y, 0, [scaling.alpha.mul_add(sum, T::Sum::ZERO)]);
                        } else {
                            write::<T>(row, y, items, scaling, feature, sum);
                        }
                    }
                    left &= left - 1;
                    row = row.wrapping_add(1);
                }
                open_row = open_row.wrapping_add(row_starts.all);
            }
        }
        if lane == WARP_SIZE - 1 {
            parts.tail.store(warp as usize, open);
            let has_start = open_row != head_row;
            parts.has_start.store(warp as usize, u32::from(has_start));
            if has_start {
                parts.row.store(warp as usize, row_of(items, open_row));
            }
        }
    }
}

/// The chunks of a warp, of those of a task: the first number and the number after the last one.
#[inline(always)]
fn chunks_of_warp(begin: u32, end: u32, warp: u32) -> (u32, u32) {
    let first = begin / CHUNK;
    let chunks = end.div_ceil(CHUNK) - first;
    let before = |warp: u32| first + chunks * warp / WARPS;
    (before(warp), before(warp + 1))
}

/// The first nonzero of a warp, of those of a task.
#[inline(always)]
pub(crate) fn first_of_warp(begin: u32, end: u32, warp: u32) -> u32 {
    let (first, _) = chunks_of_warp(begin, end, warp);
    first.saturating_mul(CHUNK).max(begin).min(end)
}

/// The row of A with that number among those that have nonzeros.
///
/// # Safety
///
/// There is such a row.
#[inline(always)]
unsafe fn row_of<S: Element>(items: &Items<S>, ordinal: u32) -> u32 {
    if items.marks.row.address() == 0 {
        ordinal
    } else {
        // SAFETY: the list has each row that has nonzeros.
        unsafe { items.marks.row.load(ordinal as usize) }
    }
}

/// Joins the parts of the warps, and writes the rows that begin in one warp and end in another one. Stores the parts of
/// rows that other tasks share, and returns whether there are any.
///
/// # Safety
///
/// The contract of the kernel. All threads of the block call it, after a barrier that follows [`add_up`].
#[inline(always)]
unsafe fn join<T: Operand>(
    y: &DenseMut<T>,
    (items, scaling): (&Items<T::Sum>, &Scaling<T::Sum>),
    parts: WarpParts<T::Sum>,
    (task, feature): (u32, u32),
) -> bool {
    // SAFETY: the tasks have starts, and a nonzero has a mark; the parts are this task's, and the row of a warp in
    // which one begins is the last of these.
    unsafe {
        let nonzeros = items.start.load(items.marks.tasks as usize);
        // Whether a nonzero continues a row that began before it.
        let goes_on_at = |nonzero: u32| {
            let (word, bit) = (nonzero / u32::BITS, nonzero % u32::BITS);
            nonzero < nonzeros && items.marks.bits.load(word as usize) >> bit & 1 == 0
        };
        let starts_inside = goes_on_at(items.start.load(task as usize));
        let goes_on = goes_on_at(items.start.load(task as usize + 1));
        if thread::thread_idx_x() != 0 {
            return starts_inside || goes_on;
        }
        let store_part = |part: usize, sum: T::Sum| {
            let index = part * y.cols as usize + feature as usize;
            items.partial.store(index, sum);
        };
        let mut open = Total::start();
        // Whether no row has begun so far: the open row is a part of one that began before the task, or nothing.
        let mut is_head = true;
        let mut row = 0;
        let mut warp = 0;
        while warp < WARPS as usize {
            thread::keep_rolled();
            if parts.has_start.load(warp) != 0 {
                let sum = Total::join(open, parts.head.load(warp));
                if !is_head {
                    write::<T>(row, y, items, scaling, feature, sum);
                } else if starts_inside {
                    store_part(split_rows::head(task), sum);
                }
                is_head = false;
                row = parts.row.load(warp);
                open = Total::start();
            }
            open = Total::join(open, parts.tail.load(warp));
            warp += 1;
        }
        if is_head && starts_inside {
            store_part(split_rows::head(task), open);
        } else if goes_on {
            store_part(split_rows::tail(task), open);
        } else if !is_head {
            write::<T>(row, y, items, scaling, feature, open);
        }
        starts_inside || goes_on
    }
}
