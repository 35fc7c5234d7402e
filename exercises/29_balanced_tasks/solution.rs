//! A binary search for the last row that begins at the nonzero or before it.

use cuda_std::prelude::*;

/// Nonzeros of a task.
const TASK: u32 = 32;

/// The row in which each task begins, a thread for each task.
///
/// # Safety
///
/// `row_ptr` holds `rows + 1` numbers that do not fall, and `first_row` one for each of `tasks` tasks. All tasks begin
/// at a nonzero.
#[kernel]
pub unsafe fn task_rows(rows: u32, row_ptr: Global<u32>, tasks: u32, first_row: GlobalMut<u32>) {
    let task = thread::index_1d() as u32;
    if task >= tasks {
        return;
    }
    let nonzero = task * TASK;
    let (mut low, mut high) = (0, rows - 1);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        // SAFETY: `middle` is less than `rows`.
        if unsafe { row_ptr.load(middle as usize) } <= nonzero {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    // SAFETY: `task` is less than `tasks`.
    unsafe { first_row.store(task as usize, low) };
}
