//! Rows that are split between tasks: the warp that stores the last part of a row joins them all.
//!
//! A *head* is a task's part of a row that began in an earlier task, a *tail* its part of a row that began in it and
//! goes on. A row has the tail of the task in which it begins, and the heads of all tasks up to the one in which it
//! ends. They are joined in this order, whoever does it: the result has the same bits in every run.
//!
//! The blocks of `vector` have several tasks each, and have joined the parts in them: there, a part is a block's.

use crate::items::Items;
use crate::product::lane_groups::LaneGroups;
use crate::product::reduction::Reducer;
use crate::product::row_parts::RowParts;
use crate::product::scaling::Scaling;
use crate::product::tasks::{last_item, step_of};
use cuda_std::prelude::*;
use warprow_kernels_matrix::Operand;
use warprow_kernels_matrix::{Csr, DenseMut};

/// The index of the head of a task, or of a block.
pub(in crate::product) fn head(task: u32) -> usize {
    2 * task as usize
}

/// The index of its tail.
pub(in crate::product) fn tail(task: u32) -> usize {
    2 * task as usize + 1
}

/// Joins the rows of which the warp's task has stored the last part: a row that began before it, and one that goes on
/// after it. The same for a block of `TASKS` tasks, of which one warp does it.
///
/// # Safety
///
/// The kernel's contract. No item has several tasks. All lanes of the warp call it, once, after the parts of the task
/// are stored; those of a block's other warps, before a barrier.
#[inline(always)]
pub(in crate::product) unsafe fn finish<
    T: Operand,
    R: Reducer,
    const WIDTH: usize,
    const TASKS: u32,
>(
    (a, y): (&Csr<T::Sum>, &DenseMut<T>),
    (items, scaling): (&Items<T::Sum>, &Scaling<T::Sum>),
    groups: LaneGroups,
    of_warp: u32,
) {
    // Two rounds of one loop: half the code.
    let mut boundary = of_warp;
    while boundary <= of_warp + 1 {
        thread::keep_rolled();
        // SAFETY: the task and the one after it have starts; the rest is this function's contract.
        unsafe {
            if let Some(row) = SplitRow::at::<T::Sum, TASKS>(a, items, boundary)
                // A row that began before the task and goes on after it has one part in it.
                && (boundary == of_warp || row.first == of_warp)
                && row.parts().arrive(items)
            {
                row.parts().join::<T, R, WIDTH>(y, items, scaling, groups);
            }
        }
        boundary = thread::opaque(boundary + 1);
    }
}

/// A row that is split between tasks, or between blocks.
#[derive(Clone, Copy)]
struct SplitRow {
    row: u32,
    /// The tasks in which it begins and ends, or the blocks.
    first: u32,
    last: u32,
}

impl SplitRow {
    /// The row inside which a task starts, if it does; the same for a block of `TASKS` tasks.
    ///
    /// # Safety
    ///
    /// `items` are tasks of A; `task` is one of them, or their number; or the block is one of theirs, or the number of
    /// blocks.
    #[inline(always)]
    unsafe fn at<S: Element, const TASKS: u32>(
        a: &Csr<S>,
        items: &Items<S>,
        task: u32,
    ) -> Option<Self> {
        let task = match TASKS {
            1 => task,
            _ => (task * TASKS).min(items.count),
        };
        // SAFETY: the task has a start; the row is compared with the rows of A before it is used, and a row that is
        // split has steps in its first and its last task.
        unsafe {
            let row = items.row.load(task as usize);
            if row >= a.rows {
                return None;
            }
            let row_start = a.row_ptr.load(row as usize);
            if items.start.load(task as usize) <= row_start {
                return None;
            }
            let base = a.row_ptr.load(0);
            let row_end = a.row_ptr.load(row as usize + 1);
            let first_step = step_of(row, row_start - base);
            Some(Self {
                row,
                first: (first_step / u64::from(items.task_size.max(1))) as u32 / TASKS,
                last: last_item(row_end - base, row, items) / TASKS,
            })
        }
    }

    /// Its parts.
    #[inline(always)]
    fn parts(self) -> RowParts<impl Fn(u32) -> usize> {
        RowParts {
            row: self.row,
            row_of_y: None,
            counter: self.first,
            count: self.last - self.first + 1,
            index: move |k| match k {
                0 => tail(self.first),
                _ => head(self.first + k),
            },
        }
    }
}
