//! Tasks: the matrix cut into runs of rows and nonzeros of nearly the same size, and the sums of the rows that the cuts hit.
//!
//! The idea is merge path (Merrill and Garland, "Merge-Based Parallel Sparse Matrix-Vector Multiplication", SC 2016,
//! section 3): a row costs one step to end it and one for each of its nonzeros, so that the matrix is a path of
//! `rows + nonzeros` steps, and task t starts at step `t * task_size`. Row r covers the steps from `row_ptr[r] + r` to
//! `row_ptr[r + 1] + r`, which a binary search finds for each task by itself.
//!
//! What is ours: a row of at most `task_size` nonzeros is not cut, but taken whole by the task in which it starts, so that
//! most matrices have few cut rows or none. The parts of a cut row are added up in an order that is always the same, in shared
//! memory those of a block, in device memory those of several: the same bits every time.
//!
//! ```text
//! task_size 8:    row_ptr = [0, 3, 4, 14, 17], 4 rows, 17 nonzeros, 21 steps, 3 tasks
//!
//! row of each nonzero     0 0 0 1 2 2 2 2 2 2 2 2 2 2 3 3 3
//! tasks                  |           |               |     |
//! start: row, nonzero     0, 0        2, 6            3, 14        row 2, of 10 nonzeros, is cut after two of them
//! ```

use super::Items;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// Threads in a block of [`starts`].
const BLOCK: u32 = 256;

/// How many tasks a matrix has.
pub fn count(rows: u32, nonzeros: u32, task_size: u32) -> u64 {
    (u64::from(rows) + u64::from(nonzeros)).div_ceil(u64::from(task_size))
}

/// The launch of [`starts`] for that many tasks: a thread each, and one for the end.
pub fn launch(tasks: u32) -> LaunchConfig {
    LaunchConfig::new(tasks / BLOCK + 1, BLOCK)
}

/// Where each task starts: `row[t]` and `start[t]`, its nonzero; and the end of the matrix at `t = tasks`. A thread each. How
/// many start inside a row is added to `cuts[0]`.
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
    cuts: GlobalMut<u32>,
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
            if u64::from(row_ptr.load(middle as usize) - base) + u64::from(middle) <= step {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let (mut r, mut nonzero) = (low, row_ptr.load(low as usize));
        if r < rows {
            let end = row_ptr.load(r as usize + 1);
            if end - nonzero > task_size {
                nonzero = base + (step - u64::from(r)) as u32;
                if nonzero == end {
                    // At the row's last step nothing is left of it.
                    r += 1;
                } else if nonzero > row_ptr.load(r as usize) {
                    cuts.atomic_add(Scope::Device, 0, 1);
                }
            }
        }
        row.store(t as usize, r);
        start.store(t as usize, nonzero);
    }
}

/// The task in which row `r`, a cut one, starts.
///
/// # Safety
///
/// `row_ptr` are a matrix's row pointers, and `r` is a row of it.
#[inline(always)]
pub(super) unsafe fn first(row_ptr: &Global<u32>, r: u32, task_size: u32) -> u32 {
    // SAFETY: a row of the matrix.
    let start = unsafe { row_ptr.load(r as usize) - row_ptr.load(0) };
    ((u64::from(start) + u64::from(r)) / u64::from(task_size)) as u32
}

/// The task in which row `r`, a cut one, ends.
///
/// # Safety
///
/// As for [`first`]; `items` are the matrix's tasks.
#[inline(always)]
pub(super) unsafe fn last<T: Element>(row_ptr: &Global<u32>, r: u32, items: &Items<T>) -> u32 {
    // SAFETY: a row of the matrix; the step is one of the matrix, the task at most the end's.
    unsafe {
        let end = row_ptr.load(r as usize + 1) - row_ptr.load(0);
        let task = ((u64::from(end) + u64::from(r)) / u64::from(items.task_size)) as u32;
        // A task that would start at the row's last step starts at the next row.
        if items.row.load(task as usize) == r {
            task
        } else {
            task - 1
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> impl Iterator<Item = &'static &'static str> {
    starts().entry_points().iter()
}
