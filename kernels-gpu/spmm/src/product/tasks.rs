//! Tasks: runs of rows and nonzeros with nearly the same work; and the sums of rows that are split between tasks.
//!
//! A task is found as in merge path (Merrill and Garland, "Merge-Based Parallel Sparse Matrix-Vector Multiplication",
//! SC 2016, section 3). A row costs one step for each nonzero and [`ROW_STEPS`] for its end. Row r starts at step
//! `row_ptr[r] + ROW_STEPS * r`, task t at step `t * task_size`, and a binary search finds a task's first row.
//!
//! In contrast to merge path, a row is split only if it has more nonzeros than a limit. The parts of a split row are
//! added in order, first in a block's shared memory, then by a second kernel: no atomics, the same bits in every run.
//!
//! A sub-warp's item is one task or, if many rows are split, several. Large items cost less for each nonzero, but all
//! others wait for one that starts last. So the first items are [large](crate::items::LargeItems) and the last ones
//! small, as in "factoring" (Hummel, Schonberg and Flynn, Communications of the ACM 35, 1992).
//!
//! ```text
//! task_size 8, rows of more than 8 nonzeros are split:    row_ptr = [0, 3, 4, 14, 17], 25 steps, 4 tasks
//!
//! row of each nonzero     0 0 0 1 2 2 2 2 2 2 2 2 2 2 3 3 3
//! start: row, nonzero     0, 0    2, 4            2, 12 3, 14         row 2, of 10 nonzeros, is split after eight
//! ```

use crate::Items;
use crate::product::reduction::{Greatest, Reducer, Reduction, Total};
use crate::product::row_epilogue::{LaneOutput, RowEpilogue};
use crate::product::scaling::Scaling;
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::DenseMut;
use warprow_kernels_matrix::{Operand, SumOf};

/// Threads in a block of these kernels.
const BLOCK: u32 = 256;

/// Maximum number of parts that one warp sums; a block sums the rows of more parts.
const MANY_PARTS: u32 = 32;

/// Warps in a block.
const WARPS: u32 = BLOCK / WARP_SIZE;

/// Steps of a row's end, where a nonzero is one step. With one step, graphs whose short rows lie together take up to
/// 1.12 times as long; with three, wide rows of X cost 3 % more.
pub const ROW_STEPS: u32 = 2;

/// The step with so many rows and nonzeros before it.
#[inline(always)]
pub fn step_of(rows: u32, nonzeros: u32) -> u64 {
    u64::from(ROW_STEPS) * u64::from(rows) + u64::from(nonzeros)
}

/// The number of tasks of a matrix.
pub fn count(rows: u32, nonzeros: u32, task_size: u32) -> u64 {
    step_of(rows, nonzeros).div_ceil(u64::from(task_size))
}

/// The launch of [`starts`] and [`find_split_rows`] for so many tasks: a thread each, and one for the end.
pub fn launch(tasks: u32) -> LaunchConfig {
    LaunchConfig::new(tasks / BLOCK + 1, BLOCK)
}

/// The launch of [`combine`]: a warp for each row of few parts and a block for each row of many, for each tile of 32
/// features. The rows of many parts take longest, and come first.
pub fn launch_combine(few: u32, many: u32, features: u32) -> LaunchConfig {
    let tiles = features.div_ceil(WARP_SIZE).min(crate::MAX_GRID_Y);
    LaunchConfig::new((many + few.div_ceil(WARPS), tiles), BLOCK)
}

/// The handle of the kernel that adds up the parts of split rows, or takes the greatest of them.
#[cfg(not(target_arch = "nvptx64"))]
pub fn combine_handle<T: Operand>(reduction: Reduction) -> Kernel<CombineArguments<T>> {
    if reduction.is_extremum() {
        combine_max::<T>()
    } else {
        combine::<T>()
    }
}

/// The arguments: the items with their parts, the split rows, Y, and the scaling.
#[cfg(not(target_arch = "nvptx64"))]
pub type CombineArguments<T> = (
    Items<SumOf<T>>,
    SplitRowLists,
    DenseMut<T>,
    Scaling<SumOf<T>>,
);

/// Where each task starts, `row[t]` and its nonzero `start[t]`, with the end of the matrix at `t = tasks`. A thread
/// each.
///
/// Rows of more than `longest` nonzeros are split. A task that would start inside another row starts at that row's
/// start; so a task is empty if the one after it starts there too.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `row` and `start` `tasks + 1`.
#[kernel(name = "spmm_task_starts")]
pub unsafe fn starts(
    rows: u32,
    row_ptr: Global<u32>,
    task_size: u32,
    longest: u32,
    tasks: u32,
    row: GlobalMut<u32>,
    start: GlobalMut<u32>,
) {
    let t = thread::index_1d();
    if t > u64::from(tasks) {
        return;
    }
    // SAFETY: `low`, `middle` and `r` are at most `rows`, `t` is at most `tasks`.
    unsafe {
        let base = row_ptr.load(0);
        let step = t * u64::from(task_size);
        // The last row that starts at `step` or before; `rows` past the end.
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if step_of(middle, row_ptr.load(middle as usize) - base) <= step {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let (mut r, mut nonzero) = (low, row_ptr.load(low as usize));
        if r < rows {
            let end = row_ptr.load(r as usize + 1);
            if end - nonzero > longest {
                // The steps of the row's end have no nonzeros left; they may be more than a u32 holds.
                let before = (step - step_of(r, 0)).min(u64::from(end - base));
                nonzero = base + before as u32;
                if nonzero == end {
                    r += 1;
                }
            }
        }
        row.store(t as usize, r);
        start.store(t as usize, nonzero);
    }
}

/// The rows that are split between groups of `group` items: `few[..counts[0]]` are those of few parts,
/// `many[..counts[1]]` those of many. A thread a group. The order of the lists varies from run to run, and no result
/// depends on it.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `row` and `start` are [`starts`]'s, `few` and `many` have room for four numbers
/// for each group, `counts` holds two zeros. Blocks have whole warps, along x.
#[kernel(name = "spmm_find_cuts")]
pub unsafe fn find_split_rows(
    rows: u32,
    row_ptr: Global<u32>,
    items: Items<u32>,
    group: u32,
    counts: GlobalMut<u32>,
    few: GlobalMut<u32>,
    many: GlobalMut<u32>,
) {
    // SAFETY: all lanes are here, since the launch has whole warps. A row is in one list, which has room for one row of
    // each group.
    unsafe {
        let split = split_row(rows, row_ptr, &items, group);
        let is_many = split.is_some_and(|[_, first, last, _]| last - first + 2 > MANY_PARTS);
        let of_few = next_place(counts, 0, split.is_some() && !is_many);
        let of_many = next_place(counts, 1, is_many);
        if let Some(split) = split {
            let (list, place) = if is_many {
                (many, of_many)
            } else {
                (few, of_few)
            };
            list.store4(4 * place as usize, split);
        }
    }
}

/// The row that the thread's group of items splits first: an element of [`SplitRowLists`].
///
/// # Safety
///
/// That of [`find_split_rows`].
#[inline(always)]
unsafe fn split_row(
    rows: u32,
    row_ptr: Global<u32>,
    items: &Items<u32>,
    group: u32,
) -> Option<[u32; 4]> {
    let g = thread::index_1d();
    let t = g * u64::from(group);
    if t == 0 || t >= u64::from(items.count) {
        return None;
    }
    let (g, t) = (g as u32, t as u32);
    // SAFETY: `t` is below `items.count`, so its first task has a start; `r` is below `rows`.
    unsafe {
        let first = items.large.first_task(t) as usize;
        let before = items.large.first_task(t - group) as usize;
        let r = items.row.load(first);
        if r == rows {
            return None;
        }
        let row_start = row_ptr.load(r as usize);
        let splits_here = items.start.load(first) > row_start;
        let splits_before = items.row.load(before) == r && items.start.load(before) > row_start;
        if !splits_here || splits_before {
            return None;
        }
        let row_end = row_ptr.load(r as usize + 1) - row_ptr.load(0);
        Some([r, g, last_item(row_end, r, items) / group.max(1), 0])
    }
}

/// Reserves a place in the list that has `counts[list]` elements, for each lane that wants one: with a single atomic
/// addition for a warp. All lanes must be here.
///
/// # Safety
///
/// `counts` has a number for the list.
#[inline(always)]
unsafe fn next_place(counts: GlobalMut<u32>, list: usize, wants: bool) -> u32 {
    let wanting = warp::ballot(FULL_MASK, wants);
    let mut first = 0;
    if wanting != 0 && warp::lane_id() == 0 {
        // SAFETY: the caller's contract.
        first = unsafe { counts.atomic_add(Scope::Device, list, wanting.count_ones()) };
    }
    let before = wanting & ((1 << warp::lane_id()) - 1);
    warp::shfl_idx(FULL_MASK, first, 0, WARP_SIZE) + before.count_ones()
}

/// The item in which a split row `r` ends, whose last nonzero is the one before `end`.
///
/// # Safety
///
/// `items` are tasks.
#[inline(always)]
pub(crate) unsafe fn last_item<T: Element>(end: u32, r: u32, items: &Items<T>) -> u32 {
    // A task has steps: `max` tells the compiler that the division does not panic.
    let task = (step_of(r, end) / u64::from(items.task_size.max(1))) as u32;
    // A task that would start at the first step of the row's end starts at the next row instead.
    // SAFETY: the step is a step of the matrix, so the task is at most the last one.
    let is_of_row = unsafe { items.row.load(task as usize) } == r;
    items.large.item_of(if is_of_row { task } else { task - 1 })
}

/// The split rows. A row is four numbers: the row, the first group of items that starts inside it, the group in which
/// it ends, and
/// 0. So [`combine`] reads all that it wants with one load; its time is that of a chain of loads.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct SplitRowLists {
    /// The number of rows of few parts.
    pub few_count: u32,
    /// The number of rows of many parts.
    pub many_count: u32,
    /// The rows of few parts.
    pub few: Global<u32>,
    /// The rows of many parts.
    pub many: Global<u32>,
}

/// `Y[row, j] = alpha * sum of the row's parts + beta * Y[row, j]` for each split row, a warp or a block for a row and
/// 32 features. A part costs 4 or 8 bytes a feature.
///
/// The first part is the tail of the group before the row's first group in `split_rows`. The others are the heads of
/// that group and of the groups after it, up to the one in which the row ends.
///
/// # Safety
///
/// `split_rows` are [`find_split_rows`]'s lists, `items` are tasks with the sums of this product, `y` its result, with
/// numbers in the split rows if beta is not 0.
#[kernel(name = "spmm_combine", T = [f32, f64, f16, bf16])]
pub unsafe fn combine<T: Operand>(
    items: Items<SumOf<T>>,
    split_rows: SplitRowLists,
    y: DenseMut<T>,
    scaling: Scaling<SumOf<T>>,
) {
    // SAFETY: `join_parts` requires of its caller what this kernel requires.
    unsafe { join_parts::<T, Total>(items, split_rows, y, scaling) };
}

/// As [`combine`], with the greatest of the parts instead of their sum.
///
/// # Safety
///
/// That of [`combine`].
#[kernel(name = "spmm_combine_max", T = [f32, f64, f16, bf16])]
pub unsafe fn combine_max<T: Operand>(
    items: Items<SumOf<T>>,
    split_rows: SplitRowLists,
    y: DenseMut<T>,
    scaling: Scaling<SumOf<T>>,
) {
    // SAFETY: `join_parts` requires of its caller what this kernel requires.
    unsafe { join_parts::<T, Greatest>(items, split_rows, y, scaling) };
}

/// Joins the parts of each split row and writes the row; a lane has a feature of a tile of 32.
///
/// # Safety
///
/// That of [`combine`].
#[inline(always)]
unsafe fn join_parts<T: Operand, R: Reducer>(
    items: Items<SumOf<T>>,
    split_rows: SplitRowLists,
    y: DenseMut<T>,
    scaling: Scaling<SumOf<T>>,
) {
    let joints = shared_array!(T::Sum; 256);
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    let block = thread::block_idx_x();
    let by_block = block < split_rows.many_count;
    let few = (block - split_rows.many_count.min(block)) * WARPS + warp;
    if !by_block && few >= split_rows.few_count {
        return;
    }
    let (part, stride) = if by_block { (warp, WARPS) } else { (0, 1) };
    let features = y.cols as usize;
    // SAFETY: the lists have `many_count` and `few_count` rows, and each part up to `last` was written; all threads of
    // a block take the same branch at the barriers.
    unsafe {
        let [r, first, last, _] = if by_block {
            split_rows.many.load4(4 * block as usize)
        } else {
            split_rows.few.load4(4 * few as usize)
        };
        let mut tile = thread::block_idx_y() as usize;
        while tile < features.div_ceil(WARP_SIZE as usize) {
            let feature = tile * WARP_SIZE as usize + lane as usize;
            let partial = items.partial.offset(feature.min(features - 1));
            let head = |g: u32| partial.load(2 * g as usize * features);
            let mut sum = R::start();
            if part == 0 {
                sum = partial.load((2 * first as usize - 1) * features);
            }
            let mut g = first + part;
            while g + 3 * stride <= last {
                let parts: [T::Sum; 4] = array::from_fn(|k| head(g + k as u32 * stride));
                let (low, high) = (R::join(parts[0], parts[1]), R::join(parts[2], parts[3]));
                sum = R::join(sum, R::join(low, high));
                g += 4 * stride;
            }
            while g <= last {
                sum = R::join(sum, head(g));
                g += stride;
            }
            if by_block {
                joints.store((warp * WARP_SIZE + lane) as usize, sum);
                thread::sync_threads();
                if warp == 0 {
                    for other in 1..WARPS {
                        let other = joints.load((other * WARP_SIZE + lane) as usize);
                        sum = R::join(sum, other);
                    }
                }
                thread::sync_threads();
            }
            if part == 0 {
                let output = LaneOutput {
                    row: r as usize,
                    y: &y,
                    items: &items,
                    row_of_y: None,
                    feature: feature as u32,
                    features: y.cols,
                };
                RowEpilogue::<T>::write::<WARP_SIZE, 1, 1>(&scaling, output, [[sum]]);
            }
            tile += thread::grid_dim_y() as usize;
        }
    }
}
