//! # 29: Tasks of equal size
//!
//! If each thread takes a row, long rows hold up the others. If each takes 32 consecutive nonzeros, a **task**, all
//! have the same work. But then a thread must find out in which row its task begins. Only `row_ptr` tells:
//!
//! ```text
//! row_ptr    0  5  5  70  71         row 0: nonzeros 0 to 4, row 1: none, row 2: 5 to 69, row 3: 70
//! task       0: nonzero 0, row 0     1: nonzero 32, row 2     2: nonzero 64, row 2
//! ```
//!
//! The kernel as delivered begins at row 0 and walks. That is right, but the last task reads all row pointers.
//!
//! Your task: use a binary search. Mind empty rows: the nonzero belongs to the *last* row that begins at it or before
//! it.
//!
//! The file as delivered fails with too many "load requests to global memory; the maximum is 150".

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
    // SAFETY: the nonzero exists, so its row is less than `rows`, and `row + 1` is at most `rows`.
    unsafe {
        let mut row = 0;
        while row + 1 < rows as usize && row_ptr.load(row + 1) <= nonzero {
            row += 1;
        }
        first_row.store(task as usize, row as u32);
    }
}
