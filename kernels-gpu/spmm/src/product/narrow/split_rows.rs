//! Rows that are split between tasks: the warp that stores the last part of a row joins them all.
//!
//! A *head* is a task's part of a row that began in an earlier task, a *tail* its part of a row that began in it and
//! goes on. A row has the tail of the task in which it begins, and the heads of all tasks up to the one in which it
//! ends. They are joined in this order, whoever does it: the result has the same bits in every run.

use super::lane_groups::LaneGroups;
use super::walk::join_groups;
use crate::items::Items;
use crate::product::reduction::Reducer;
use crate::product::row_epilogue::{LaneOutput, RowEpilogue};
use crate::product::scaling::Scaling;
use crate::product::tasks::{last_item, step_of};
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Csr, DenseMut};
use warprow_kernels_matrix::Operand;

/// Parts that a lane reads together.
const UNROLL: usize = 4;

/// The index of a task's head.
pub(super) fn head(task: u32) -> usize {
    2 * task as usize
}

/// The index of a task's tail.
pub(super) fn tail(task: u32) -> usize {
    2 * task as usize + 1
}

/// A row of which a task has a part.
#[derive(Clone, Copy)]
pub(super) struct SplitRow {
    row: u32,
    /// The tasks in which the row begins and ends.
    first: u32,
    last: u32,
    /// Whether the row is split at all.
    is_split: bool,
    /// Whether the warp has stored the last of its parts.
    is_complete: bool,
}

impl SplitRow {
    /// The rows of which a task has a head and a tail. A row that has begun before and goes on counts once.
    ///
    /// # Safety
    ///
    /// `items` are tasks of A, and `task` is one of them.
    #[inline(always)]
    pub unsafe fn both_of<S: Element>(a: &Csr<S>, items: &Items<S>, task: u32) -> [Self; 2] {
        // SAFETY: the task and the one after it have starts.
        unsafe {
            let (at_start, mut at_end) = (Self::at(a, items, task), Self::at(a, items, task + 1));
            at_end.is_split &= at_end.row != at_start.row || !at_start.is_split;
            [at_start, at_end]
        }
    }

    /// The row in which a task starts, which is split if it starts inside it.
    #[inline(always)]
    unsafe fn at<S: Element>(a: &Csr<S>, items: &Items<S>, task: u32) -> Self {
        let mut split = Self {
            row: 0,
            first: 0,
            last: 0,
            is_split: false,
            is_complete: false,
        };
        // SAFETY: the task has a start; the row is compared with the rows of A before it is used, and a row that is
        // split has steps in its first and its last task.
        unsafe {
            split.row = items.row.load(task as usize);
            if split.row < a.rows {
                let row_start = a.row_ptr.load(split.row as usize);
                split.is_split = items.start.load(task as usize) > row_start;
                if split.is_split {
                    let base = a.row_ptr.load(0);
                    let row_end = a.row_ptr.load(split.row as usize + 1);
                    let first_step = step_of(split.row, row_start - base);
                    split.first = (first_step / u64::from(items.task_size.max(1))) as u32;
                    split.last = last_item(row_end - base, split.row, items);
                }
            }
        }
        split
    }

    /// Notes that the warp has stored its part of the row.
    ///
    /// # Safety
    ///
    /// All lanes of the warp call it, once, after they have stored the part.
    #[inline(always)]
    pub unsafe fn arrive<S: Element>(&mut self, items: &Items<S>) {
        if !self.is_split {
            return;
        }
        warp::sync_warp(FULL_MASK);
        let mut before = 0;
        if warp::lane_id() == 0 {
            thread::device_fence();
            // SAFETY: there is a number of arrivals for each task, which warps access by atomic operations alone.
            before = unsafe {
                items
                    .arrivals
                    .atomic_add(Scope::Device, self.first as usize, 1)
            };
        }
        let before = warp::shfl_idx(FULL_MASK, before, 0, WARP_SIZE);
        self.is_complete = before == self.last - self.first;
    }

    /// Joins the parts of the row and writes it, if the warp has stored the last of them. It sets the number of
    /// arrivals to 0 for the next run.
    ///
    /// # Safety
    ///
    /// The kernel's contract. All lanes of the warp call it, after [`arrive`](Self::arrive).
    #[inline(always)]
    pub unsafe fn join<T: Operand, R: Reducer, const WIDTH: usize>(
        self,
        y: &DenseMut<T>,
        items: &Items<T::Sum>,
        scaling: &Scaling<T::Sum>,
        groups: LaneGroups,
    ) {
        if !self.is_complete {
            return;
        }
        let features = y.cols as usize;
        // SAFETY: all parts of the row are stored, and the fence comes after the last arrival; no other warp joins
        // this row.
        unsafe {
            if warp::lane_id() == 0 {
                thread::device_fence();
                items
                    .arrivals
                    .atomic_store(Scope::Device, self.first as usize, 0);
            }
            warp::sync_warp(FULL_MASK);
            let mut feature = groups.vector() as usize * WIDTH;
            let mut first_feature = 0;
            while first_feature < features {
                let last_vector = feature.min(features - WIDTH);
                let part = |k: u32| {
                    let part = if k == 0 {
                        tail(self.first)
                    } else {
                        head(self.first + k)
                    };
                    let index = part * features + last_vector;
                    let vector = T::Sum::load_mut::<WIDTH>(items.partial, index);
                    array::from_fn(|f| T::Sum::get(&vector, f))
                };
                let parts = self.last - self.first + 1;
                let mut sum: [T::Sum; WIDTH] = [R::start(); WIDTH];
                let mut k = groups.group();
                while k < parts {
                    let some: [[T::Sum; WIDTH]; UNROLL] = array::from_fn(|i| {
                        let k = k + i as u32 * groups.count();
                        if k < parts {
                            part(k)
                        } else {
                            [R::start(); WIDTH]
                        }
                    });
                    #[allow(
                        clippy::needless_range_loop,
                        reason = "an iterator over the array is not unrolled, and puts it into local memory"
                    )]
                    for i in 0..UNROLL {
                        sum = array::from_fn(|f| R::join(sum[f], some[i][f]));
                    }
                    k += UNROLL as u32 * groups.count();
                }
                let sum = join_groups::<T::Sum, R, WIDTH>(groups, sum);
                if groups.group() == 0 {
                    let output = LaneOutput {
                        row: self.row as usize,
                        y,
                        items,
                        row_of_y: None,
                        feature,
                        features,
                    };
                    RowEpilogue::<T>::write::<1, WIDTH, 1>(scaling, output, [sum]);
                }
                feature += groups.lanes() as usize * WIDTH;
                first_feature += groups.lanes() as usize * WIDTH;
            }
        }
    }
}
