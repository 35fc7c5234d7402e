//! Tasks: the matrix cut into runs of rows and nonzeros of nearly the same size, and the sums of the rows that the cuts hit.
//!
//! The idea is merge path (Merrill and Garland, "Merge-Based Parallel Sparse Matrix-Vector Multiplication", SC 2016,
//! section 3): a row costs one step to end it and one for each of its nonzeros, so that the matrix is a path of
//! `rows + nonzeros` steps, and task t starts at step `t * task_size`. Row r covers the steps from `row_ptr[r] + r` to
//! `row_ptr[r + 1] + r`, which a binary search finds for each task by itself.
//!
//! What is ours: a row of at most `task_size` nonzeros is not cut, but taken whole by the task in which it starts, so that
//! most matrices have few cut rows or none. The parts of a cut row are written aside, and added up in their order by a
//! second kernel: no atomics, and the same bits every time.
//!
//! ```text
//! row_ptr    0     3 4               14    17        task_size 8, rows 4, nonzeros 17, steps 21
//! row        0 0 0 1 2 2 2 2 2 2 2 2 2 2 3 3 3
//! tasks     |- - - - - -|- - - - - - -|- - - -|      starts: row 0 nonzero 0, row 2 nonzero 6, row 2 nonzero 14 -> row 3
//! ```

use super::Items;
use crate::matrix::DenseMut;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block of these kernels.
const BLOCK: u32 = 256;

/// A row cut into more parts than that is summed by a whole block.
const MANY_PARTS: u32 = 32;

/// Warps in a block.
const WARPS: u32 = BLOCK / WARP_SIZE;

/// How many tasks a matrix has.
pub fn count(rows: u32, nonzeros: u32, task_size: u32) -> u64 {
    (u64::from(rows) + u64::from(nonzeros)).div_ceil(u64::from(task_size))
}

/// The launch of [`starts`] and [`find_cuts`] for that many tasks: a thread each, and one for the end.
pub fn launch(tasks: u32) -> LaunchConfig {
    LaunchConfig::new(tasks / BLOCK + 1, BLOCK)
}

/// The launch of [`combine`] for that many rows with `parts` few (1 warp a row) or many (a block a row).
pub fn launch_combine(rows: u32, warps: u32, features: u32) -> LaunchConfig {
    let tiles = features.div_ceil(WARP_SIZE).min(super::MAX_GRID_Y);
    LaunchConfig::new((rows.div_ceil(WARPS / warps), tiles), BLOCK)
}

/// Where each task starts: `row[t]` and `start[t]`, its nonzero; and the end of the matrix at `t = tasks`. A thread each.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `row` and `start` `tasks + 1`.
#[kernel(name = "spmm_task_starts")]
pub unsafe fn starts(
    rows: u32,
    row_ptr: Global<u32>,
    task_size: u32,
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
        let step = t * u64::from(task_size);
        // The last row that starts at `step` or before; `rows` past the end.
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if u64::from(row_ptr.load(middle as usize)) + u64::from(middle) <= step {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let (mut r, mut nonzero) = (low, row_ptr.load(low as usize));
        if r < rows {
            let end = row_ptr.load(r as usize + 1);
            if end - nonzero > task_size {
                nonzero = (step - u64::from(r)) as u32;
                // At the row's last step nothing is left of it.
                if nonzero == end {
                    r += 1;
                }
            }
        }
        row.store(t as usize, r);
        start.store(t as usize, nonzero);
    }
}

/// The cut rows, each by the first task that starts inside it: `few[..counts[0]]` those of few parts, `many[..counts[1]]`
/// those of many. A thread a task; the lists' order is the chance of a run, and nothing depends on it.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `row` and `start` are [`starts`]'s, `few` and `many` have room for all tasks, `counts`
/// holds two zeros.
#[kernel(name = "spmm_find_cuts")]
pub unsafe fn find_cuts(
    rows: u32,
    row_ptr: Global<u32>,
    items: Items<u32>,
    counts: GlobalMut<u32>,
    few: GlobalMut<u32>,
    many: GlobalMut<u32>,
) {
    let t = thread::index_1d();
    if t == 0 || t >= u64::from(items.count) {
        return;
    }
    let t = t as u32;
    // SAFETY: tasks below `count`, rows below `rows`.
    unsafe {
        let r = items.row.load(t as usize);
        if r == rows {
            return;
        }
        let row_start = row_ptr.load(r as usize);
        let cut_here = items.start.load(t as usize) > row_start;
        let cut_before =
            items.row.load(t as usize - 1) == r && items.start.load(t as usize - 1) > row_start;
        if !cut_here || cut_before {
            return;
        }
        let parts = last_task(row_ptr.load(r as usize + 1), r, &items) - t + 2;
        let (list, counter) = if parts > MANY_PARTS {
            (many, 1)
        } else {
            (few, 0)
        };
        let place = counts.atomic_add(Scope::Device, counter, 1);
        list.store(place as usize, t);
    }
}

/// The task in which row `r`, a cut one that ends before nonzero `end`, ends.
///
/// # Safety
///
/// `items` are tasks.
#[inline(always)]
unsafe fn last_task<T: Element>(end: u32, r: u32, items: &Items<T>) -> u32 {
    let step = u64::from(end) + u64::from(r);
    let task = (step / u64::from(items.task_size)) as u32;
    // A task that would start at the row's last step starts at the next row.
    // SAFETY: the step is one of the matrix, the task at most the end's.
    if unsafe { items.row.load(task as usize) } == r {
        task
    } else {
        task - 1
    }
}

/// Adds up the parts of each cut row in their order: `Y[row, j]`, a warp (or `PARALLEL` of them) for a row and 32 features.
///
/// The first part is the tail of the task before `first[i]`, the others the heads of `first[i]` and the tasks after it, up
/// to the one in which the row ends.
///
/// # Safety
///
/// `first` has `cut_rows` tasks, `items` are tasks with the sums of this product, `y` its result.
#[kernel(name = "spmm_combine", T = [f32, f64], PARALLEL = [1, 8])]
pub unsafe fn combine<T: Real, const PARALLEL: u32>(
    row_ptr: Global<u32>,
    items: Items<T>,
    first: Global<u32>,
    cut_rows: u32,
    y: DenseMut<T>,
) {
    let sums = shared_array!(T; 256);
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    let i = thread::block_idx_x() * (WARPS / PARALLEL) + warp / PARALLEL;
    let features = y.cols as usize;
    // SAFETY: rows and tasks of the matrix; the barriers are reached by all, as all threads of a block that has one
    // share their row.
    unsafe {
        if i >= cut_rows {
            return;
        }
        let first = first.load(i as usize);
        let r = items.row.load(first as usize);
        let last = last_task(row_ptr.load(r as usize + 1), r, &items);
        let mut tile = thread::block_idx_y();
        while tile < y.cols.div_ceil(WARP_SIZE) {
            let feature = (tile * WARP_SIZE + lane) as usize;
            let partial = items.partial.offset(feature.min(features - 1));
            let head = |task: u32| partial.load(2 * task as usize * features);
            let mut sum = T::ZERO;
            if warp % PARALLEL == 0 {
                sum = partial.load((2 * first as usize - 1) * features);
            }
            let mut task = first + warp % PARALLEL;
            while task + 3 * PARALLEL <= last {
                let parts: [T; 4] = core::array::from_fn(|k| head(task + k as u32 * PARALLEL));
                sum += (parts[0] + parts[1]) + (parts[2] + parts[3]);
                task += 4 * PARALLEL;
            }
            while task <= last {
                sum += head(task);
                task += PARALLEL;
            }
            if PARALLEL > 1 {
                sums.store((warp * WARP_SIZE + lane) as usize, sum);
                thread::sync_threads();
                if warp == 0 {
                    for other in 1..PARALLEL {
                        sum += sums.load((other * WARP_SIZE + lane) as usize);
                    }
                }
                thread::sync_threads();
            } else {
                warp::sync_warp(FULL_MASK);
            }
            if warp % PARALLEL == 0 && feature < features {
                y.data.store(r as usize * features + feature, sum);
            }
            tile += thread::grid_dim_y();
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> impl Iterator<Item = &'static &'static str> {
    [
        starts().entry_points(),
        find_cuts().entry_points(),
        combine::<f32, 1>().entry_points(),
    ]
    .into_iter()
    .flatten()
}
