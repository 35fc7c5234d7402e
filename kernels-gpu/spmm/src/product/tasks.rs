//! Tasks: the matrix cut into runs of rows and nonzeros of nearly the same size, and the sums of the rows that the cuts hit.
//!
//! The idea is merge path (Merrill and Garland, "Merge-Based Parallel Sparse Matrix-Vector Multiplication", SC 2016,
//! section 3): a row costs some steps to end it and one for each of its nonzeros, so that the matrix is a path of
//! `ROW_STEPS * rows + nonzeros` steps, and task t starts at step `t * task_size`. Row r covers the steps from
//! `row_ptr[r] + ROW_STEPS * r` on, and a binary search finds the row of each task by itself.
//!
//! What is ours: a row of no more nonzeros than a task has steps, or than a part of these, is not cut, but taken whole by one task, so that
//! most matrices have few cut rows or none. The parts of a cut row are added up in their order, those of a block's group of
//! items in shared memory, and those of several groups by a second kernel: no atomics, and the same bits every time.
//!
//! A sub-warp's item is one task or, where many rows are cut, several that follow each other. A large item has fewer starts and parts of rows for
//! its nonzeros; but a sub-warp that begins one when the others end their last keeps the GPU waiting. So the first items of a matrix are
//! [large](crate::items::Large), and the last ones small (as in "factoring", Hummel, Schonberg and Flynn, Communications of the ACM 35, 1992).
//!
//! ```text
//! task_size 8, rows of more than 8 nonzeros are cut:    row_ptr = [0, 3, 4, 14, 17], 4 rows, 17 nonzeros, 25 steps, 4 tasks
//!
//! row of each nonzero     0 0 0 1 2 2 2 2 2 2 2 2 2 2 3 3 3
//! tasks                  |       |               |   |     |
//! start: row, nonzero     0, 0    2, 4            2, 12       row 2, of 10 nonzeros, is cut after eight of them
//!                                                     3, 14
//! ```

use crate::Items;
use crate::product::epilogue::Epilogue;
use crate::product::reduction::{Greatest, Reduce, Reduction, Total};
use crate::product::row_end::{Place, RowEnd};
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::DenseMut;
use warprow_kernels_matrix::{Operand, SumOf};

/// Threads in a block of these kernels.
const BLOCK: u32 = 256;

/// A row cut into more parts than that is summed by a whole block.
const MANY_PARTS: u32 = 32;

/// Warps in a block.
const WARPS: u32 = BLOCK / WARP_SIZE;

/// Steps of a row's end, where a nonzero is one. With two in the place of one, on an NVIDIA H200, f32, 32 features, R-MAT graphs with very
/// long rows (probabilities .57) took 0.89 (arxiv) to 0.98 times as long: most of their rows have one nonzero or none, and lie together. With
/// three arxiv took 0.83 times as long, but tasks of few nonzeros cost 3 % where a whole warp has one, at 128 features and more.
pub const ROW_STEPS: u32 = 2;

/// The step that has that many rows' ends and nonzeros before it.
#[inline(always)]
pub fn step_of(rows: u32, nonzeros: u32) -> u64 {
    u64::from(ROW_STEPS) * u64::from(rows) + u64::from(nonzeros)
}

/// How many tasks a matrix has.
pub fn count(rows: u32, nonzeros: u32, task_size: u32) -> u64 {
    step_of(rows, nonzeros).div_ceil(u64::from(task_size))
}

/// The launch of [`starts`] and [`find_cuts`] for that many tasks: a thread each, and one for the end.
pub fn launch(tasks: u32) -> LaunchConfig {
    LaunchConfig::new(tasks / BLOCK + 1, BLOCK)
}

/// The launch of [`combine`] for that many rows of few parts, a warp each, and of many, a block each, for each tile of 32
/// features. The rows of many parts take longer, and come first.
pub fn launch_combine(few: u32, many: u32, features: u32) -> LaunchConfig {
    let tiles = features.div_ceil(WARP_SIZE).min(crate::MAX_GRID_Y);
    LaunchConfig::new((many + few.div_ceil(WARPS), tiles), BLOCK)
}

/// The handle of the kernel that adds up the parts of cut rows, or takes the greatest of them.
#[cfg(not(target_arch = "nvptx64"))]
pub fn combine_handle<T: Operand>(reduction: Reduction) -> Kernel<CombineArguments<T>> {
    if reduction.is_extremum() {
        combine_max::<T>()
    } else {
        combine::<T>()
    }
}

/// The arguments: the items with their parts, the cut rows, Y, and the epilogue.
#[cfg(not(target_arch = "nvptx64"))]
pub type CombineArguments<T> = (Items<SumOf<T>>, Cuts, DenseMut<T>, Epilogue<SumOf<T>>);

/// Where each task starts: `row[t]` and `start[t]`, its nonzero; and the end of the matrix at `t = tasks`. A thread each.
///
/// Rows of more than `longest` nonzeros are cut. A task inside of another row starts with that row, and one that does so twice has nothing to do.
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
    // SAFETY: rows below `rows`, tasks up to `tasks`.
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
                // At the row's last steps nothing is left of it; they may lie past the last u32.
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

/// The rows that are cut between groups of `group` items: `few[..counts[0]]` those of few parts, `many[..counts[1]]` those of
/// many. A thread a group; the lists' order is the chance of a run, and nothing depends on it.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `row` and `start` are [`starts`]'s, `few` and `many` have room for four numbers for each
/// group, `counts` holds two zeros.
#[kernel(name = "spmm_find_cuts")]
pub unsafe fn find_cuts(
    rows: u32,
    row_ptr: Global<u32>,
    items: Items<u32>,
    group: u32,
    counts: GlobalMut<u32>,
    few: GlobalMut<u32>,
    many: GlobalMut<u32>,
) {
    let g = thread::index_1d();
    let t = g * u64::from(group);
    if t == 0 || t >= u64::from(items.count) {
        return;
    }
    let (g, t) = (g as u32, t as u32);
    // SAFETY: tasks of items below `count`, rows below `rows`.
    unsafe {
        let first = items.large.first_task(t) as usize;
        let before = items.large.first_task(t - group) as usize;
        let r = items.row.load(first);
        if r == rows {
            return;
        }
        let row_start = row_ptr.load(r as usize);
        let cut_here = items.start.load(first) > row_start;
        let cut_before = items.row.load(before) == r && items.start.load(before) > row_start;
        if !cut_here || cut_before {
            return;
        }
        let row_end = row_ptr.load(r as usize + 1) - row_ptr.load(0);
        let last = last_item(row_end, r, &items) / group.max(1);
        let (list, counter) = if last - g + 2 > MANY_PARTS {
            (many, 1)
        } else {
            (few, 0)
        };
        let place = counts.atomic_add(Scope::Device, counter, 1);
        list.store4(4 * place as usize, [r, g, last, 0]);
    }
}

/// The item in which row `r`, a cut one that ends before the matrix's nonzero `end`, ends.
///
/// # Safety
///
/// `items` are tasks.
#[inline(always)]
pub(crate) unsafe fn last_item<T: Element>(end: u32, r: u32, items: &Items<T>) -> u32 {
    // A task has steps: `max` tells the compiler that the division does not panic.
    let task = (step_of(r, end) / u64::from(items.task_size.max(1))) as u32;
    // A task that would start at the first step of the row's end starts at the next row.
    // SAFETY: the step is one of the matrix, the task at most the end's.
    let is_of_row = unsafe { items.row.load(task as usize) } == r;
    items.large.item_of(if is_of_row { task } else { task - 1 })
}

/// The cut rows: of each its number, the first group of items that starts inside it, that in which it ends, and 0. That is all
/// that [`combine`] has to know, with one load: it is short, and a chain of loads takes the most of it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Cuts {
    /// How many rows have few parts.
    pub few_count: u32,
    /// How many rows have many parts.
    pub many_count: u32,
    /// The rows of few parts.
    pub few: Global<u32>,
    /// The rows of many parts.
    pub many: Global<u32>,
}

// SAFETY: `repr(C)`, of scalars and device pointers, without padding: two u32 before 8-byte pointers.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl KernelParam for Cuts {}

/// Adds up the parts of each cut row in their order and writes `Y[row, j] = alpha * sum + beta * Y[row, j]`, a warp or a
/// block for a row and 32 features.
///
/// The first part is the tail of the group before the row's first one in `cuts`, the others the heads of that group and of
/// those after it, up to the one in which the row ends.
///
/// # Safety
///
/// `cuts` are [`find_cuts`]'s lists, `items` are tasks with the sums of this product, `y` its result, with numbers in the cut
/// rows if beta is not 0.
#[kernel(name = "spmm_combine", T = [f32, f64, f16, bf16])]
pub unsafe fn combine<T: Operand>(
    items: Items<SumOf<T>>,
    cuts: Cuts,
    y: DenseMut<T>,
    epilogue: Epilogue<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { join_parts::<T, Total>(items, cuts, y, epilogue) };
}

/// As [`combine`], with the greatest of the parts in the place of their sum.
///
/// # Safety
///
/// That of [`combine`].
#[kernel(name = "spmm_combine_max", T = [f32, f64, f16, bf16])]
pub unsafe fn combine_max<T: Operand>(
    items: Items<SumOf<T>>,
    cuts: Cuts,
    y: DenseMut<T>,
    epilogue: Epilogue<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { join_parts::<T, Greatest>(items, cuts, y, epilogue) };
}

/// Joins the parts of the cut rows and ends each: a lane has a feature of a tile of 32.
///
/// # Safety
///
/// That of [`combine`].
#[inline(always)]
unsafe fn join_parts<T: Operand, R: Reduce>(
    items: Items<SumOf<T>>,
    cuts: Cuts,
    y: DenseMut<T>,
    epilogue: Epilogue<SumOf<T>>,
) {
    let joints = shared_array!(T::Sum; 256);
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    let block = thread::block_idx_x();
    let by_block = block < cuts.many_count;
    let few = (block - cuts.many_count.min(block)) * WARPS + warp;
    if !by_block && few >= cuts.few_count {
        return;
    }
    let (part, stride) = if by_block { (warp, WARPS) } else { (0, 1) };
    let features = y.cols as usize;
    // SAFETY: rows and tasks of the matrix; the barriers are reached by all threads of a block or by none.
    unsafe {
        let [r, first, last, _] = if by_block {
            cuts.many.load4(4 * block as usize)
        } else {
            cuts.few.load4(4 * few as usize)
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
                let place = Place {
                    row: r as usize,
                    y: &y,
                    items: &items,
                    row_of_y: None,
                    feature,
                    features,
                };
                RowEnd::<T>::write::<WARP_SIZE, 1, 1>(&epilogue, place, [[sum]]);
            }
            tile += thread::grid_dim_y() as usize;
        }
    }
}
