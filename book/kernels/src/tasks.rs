//! SpMM in three steps, from a sub-warp for each row to tasks of equal size: the ideas of the kernel `vector`.
//!
//! `Y = A X` for matrices X and Y with [`FEATURES`] columns. A sub-warp of eight lanes has a row of X, four
//! neighbouring elements in each lane.

use crate::spmv::Csr;
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// Columns of X and Y.
pub const FEATURES: u32 = 32;

/// Lanes of a sub-warp.
pub const LANES: u32 = 8;

/// Nonzeros of a task.
pub const TASK: u32 = 32;

/// `Y = A X`, a sub-warp for each row.
///
/// # Safety
///
/// The arrays of `a` are those of a matrix with `a.rows` rows. `x` has a row of [`FEATURES`] elements for each of its
/// columns, `y` one for each of its rows; both are aligned to 16 bytes. Blocks have a multiple of 32 threads.
#[kernel]
pub unsafe fn sub_warp_per_row(a: Csr, x: Global<f32>, y: GlobalMut<f32>) {
    let row = (thread::index_1d() / u64::from(LANES)) as usize;
    let lane = warp::lane_id() % LANES;
    // SAFETY: rows below `a.rows` have nonzeros, whose columns are rows of X. All lanes of the warp run the loop until
    // its longest row ends, so all of them reach the shuffles.
    unsafe {
        let (mut first, mut end) = (0, 0);
        if row < a.rows as usize {
            (first, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        }
        let mut sums = [0.0; 4];
        while warp::any(FULL_MASK, first < end) {
            let nonzeros = load_nonzeros(&a, &x, first + lane, end);
            for (value, element) in nonzeros {
                add_product(&mut sums, value, element);
            }
            first = (first + LANES).min(end);
        }
        if row < a.rows as usize {
            y.store4(row * FEATURES as usize + 4 * lane as usize, sums);
        }
    }
}

/// Values of the sub-warp's next eight nonzeros, each with the lane's four elements of its row of X. A lane loads
/// column and value of nonzero `k`; past `end`, value and elements are 0.
///
/// # Safety
///
/// Nonzeros of `a` before `end` exist, and their columns are rows of X. All lanes of the warp call it.
#[inline(always)]
unsafe fn load_nonzeros(a: &Csr, x: &Global<f32>, k: u32, end: u32) -> [(f32, [f32; 4]); 8] {
    let lane = warp::lane_id() % LANES;
    // SAFETY: only nonzeros before `end` are loaded, and only rows of X that they name.
    unsafe {
        let (mut my_col, mut my_value) = (u32::MAX, 0.0);
        if k < end {
            my_col = a.col_idx.load(k as usize);
            my_value = a.values.load(k as usize);
        }
        array::from_fn(|i| {
            let col = warp::shfl_idx(FULL_MASK, my_col, i as u32, LANES);
            let value = warp::shfl_idx(FULL_MASK, my_value, i as u32, LANES);
            let mut element = [0.0; 4];
            if col != u32::MAX {
                element = x.load4(col as usize * FEATURES as usize + 4 * lane as usize);
            }
            (value, element)
        })
    }
}

/// Adds `value` times four elements to four sums.
#[inline(always)]
fn add_product(sums: &mut [f32; 4], value: f32, element: [f32; 4]) {
    *sums = array::from_fn(|i| value.mul_add(element[i], sums[i]));
}

/// The row in which each task starts: the row of nonzero `TASK * t`. A thread for each task.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, and `first_row` one for each task.
#[kernel]
pub unsafe fn task_rows(rows: u32, row_ptr: Global<u32>, tasks: u32, first_row: GlobalMut<u32>) {
    let task = thread::index_1d() as u32;
    if task < tasks {
        // The last row that starts at the nonzero or before it.
        let (mut low, mut high) = (0, rows - 1);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            // SAFETY: `middle` is at most `rows - 1`.
            if unsafe { row_ptr.load(middle as usize) } <= task * TASK {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        // SAFETY: `task` is below `tasks`.
        unsafe { first_row.store(task as usize, low) };
    }
}

/// The parts of a task: `(row, sums, whether the row lies in this task as a whole)` for each of its rows with nonzeros.
///
/// # Safety
///
/// As for [`equal_tasks`].
#[inline(always)]
unsafe fn for_each_part(
    a: &Csr,
    x: &Global<f32>,
    first_row: Global<u32>,
    mut write: impl FnMut(u32, usize, [f32; 4], bool),
) {
    let task = (thread::index_1d() / u64::from(LANES)) as u32;
    let lane = warp::lane_id() % LANES;
    // SAFETY: nonzeros before `end` exist, and the rows up to that of the last one. All lanes of the warp run the loop
    // equally often.
    unsafe {
        let nonzeros = a.row_ptr.load(a.rows as usize);
        let start = task.saturating_mul(TASK).min(nonzeros);
        let end = start.saturating_add(TASK).min(nonzeros);
        let (mut row, mut row_start, mut row_end) = (0, 0, 0);
        if start < end {
            row = first_row.load(task as usize) as usize;
            (row_start, row_end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        }
        let mut sums = [0.0; 4];
        let mut k = start;
        for batch in 0..TASK / LANES {
            let nonzeros = load_nonzeros(a, x, start + batch * LANES + lane, end);
            for (value, element) in nonzeros {
                if k < end {
                    add_product(&mut sums, value, element);
                    k += 1;
                }
                // Rows that end here: the present one, and empty ones after it.
                while k == row_end && k < end {
                    if row_start < row_end {
                        write(task, row, sums, row_start >= start);
                    }
                    sums = [0.0; 4];
                    row += 1;
                    (row_start, row_end) = (row_end, a.row_ptr.load(row + 1));
                }
            }
        }
        if start < end {
            write(task, row, sums, row_start >= start && row_end <= end);
        }
    }
}

/// `Y += A X` for Y of zeros, a sub-warp for each task: 32 nonzeros of any rows. Rows that lie in several tasks are
/// added up by atomic additions.
///
/// # Safety
///
/// As for [`sub_warp_per_row`]. `first_row` is what [`task_rows`] writes.
#[kernel]
pub unsafe fn equal_tasks(a: Csr, x: Global<f32>, first_row: Global<u32>, y: GlobalMut<f32>) {
    let lane = (warp::lane_id() % LANES) as usize;
    // SAFETY: the row is a row of Y. A row that lies in this task as a whole is written by nobody else.
    unsafe {
        for_each_part(&a, &x, first_row, |_, row, sums, whole| {
            let place = row * FEATURES as usize + 4 * lane;
            if whole {
                y.store4(place, sums);
            } else {
                for (i, sum) in sums.into_iter().enumerate() {
                    y.reduce_add(Scope::Device, place + i, sum);
                }
            }
        });
    }
}

/// As [`equal_tasks`], but a part of a row that lies in several tasks goes to `parts`: row `2 * task` if the row began
/// in an earlier task, and row `2 * task + 1` if it begins in this one.
///
/// # Safety
///
/// As for [`equal_tasks`]. `parts` has two rows of [`FEATURES`] elements for each task, and is aligned to 16 bytes.
#[kernel]
pub unsafe fn ordered_tasks(
    a: Csr,
    x: Global<f32>,
    first_row: Global<u32>,
    parts: GlobalMut<f32>,
    y: GlobalMut<f32>,
) {
    let lane = (warp::lane_id() % LANES) as usize;
    // SAFETY: as for `equal_tasks`; each of the two parts of a task is written once.
    unsafe {
        for_each_part(&a, &x, first_row, |task, row, sums, whole| {
            let begins_here = a.row_ptr.load(row) >= task * TASK;
            let (to, row) = if whole {
                (y, row)
            } else {
                (parts, 2 * task as usize + usize::from(begins_here))
            };
            to.store4(row * FEATURES as usize + 4 * lane, sums);
        });
    }
}

/// Adds up the parts that [`ordered_tasks`] leaves, in the order of the tasks. A sub-warp for each task; it has work if
/// a row begins in its task and goes on in the next one.
///
/// # Safety
///
/// As for [`ordered_tasks`], which has written `parts`.
#[kernel]
pub unsafe fn join_parts(
    a: Csr,
    tasks: u32,
    first_row: Global<u32>,
    parts: Global<f32>,
    y: GlobalMut<f32>,
) {
    let task = (thread::index_1d() / u64::from(LANES)) as u32;
    let lane = (warp::lane_id() % LANES) as usize;
    if task + 1 >= tasks {
        return;
    }
    // SAFETY: `task + 1` is a task, so its first row exists. The parts of its row in later tasks have been written.
    unsafe {
        let row = first_row.load(task as usize + 1) as usize;
        let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        let next = (task + 1) * TASK;
        if start < task * TASK || start >= next {
            return;
        }
        let part = |part: u32| parts.load4(part as usize * FEATURES as usize + 4 * lane);
        let mut sums = part(2 * task + 1);
        for later in task + 1..end.div_ceil(TASK) {
            let [a, b] = [sums, part(2 * later)];
            sums = array::from_fn(|i| a[i] + b[i]);
        }
        y.store4(row * FEATURES as usize + 4 * lane, sums);
    }
}
