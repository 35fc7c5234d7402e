//! Rows that are split between tasks: the warp that stores the last part of a row joins them all.
//!
//! A *head* is a task's part of a row that began in an earlier task, a *tail* its part of a row that began in it and
//! goes on. A row has the tail of the task in which it begins, and the heads of all tasks up to the one in which it
//! ends. They are joined in this order, whoever does it: the result has the same bits in every run.
//!
//! The blocks of `vector` have several tasks each, and have joined the parts in them: there, a part is a block's.

use crate::items::Items;
use crate::product::lane_groups::{LaneGroups, join_groups};
use crate::product::reduction::Reducer;
use crate::product::row_epilogue::{LaneOutput, RowEpilogue};
use crate::product::scaling::Scaling;
use crate::product::tasks::{last_item, step_of};
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::Operand;
use warprow_kernels_matrix::{Csr, DenseMut};

/// Parts that a lane reads together.
const UNROLL: usize = 4;

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
                && row.arrive(items)
            {
                row.join::<T, R, WIDTH>(y, items, scaling, groups);
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

    /// Notes that the warp has stored its part of the row. Returns whether it was the last one.
    ///
    /// # Safety
    ///
    /// All lanes of the warp call it, once, after they have stored the part.
    #[inline(always)]
    unsafe fn arrive<S: Element>(self, items: &Items<S>) -> bool {
        warp::sync_warp(FULL_MASK);
        let mut before = 0;
        if warp::lane_id() == 0 {
            thread::device_fence();
            // SAFETY: there is a number of arrivals for each task, which warps access by atomic operations alone.
            unsafe {
                let first = self.first as usize;
                before = items.arrivals.atomic_add(Scope::Device, first, 1);
                if before == self.last - self.first {
                    // For the next run.
                    items.arrivals.atomic_store(Scope::Device, first, 0);
                    thread::device_fence();
                }
            }
        }
        // The other lanes read the parts after this.
        warp::sync_warp(FULL_MASK);
        warp::shfl_idx(FULL_MASK, before, 0, WARP_SIZE) == self.last - self.first
    }

    /// Joins the parts of the row and writes it.
    ///
    /// # Safety
    ///
    /// The kernel's contract; all parts are stored, and their warps have [arrived](Self::arrive). All lanes of the
    /// warp call it.
    #[inline(always)]
    unsafe fn join<T: Operand, R: Reducer, const WIDTH: usize>(
        self,
        y: &DenseMut<T>,
        items: &Items<T::Sum>,
        scaling: &Scaling<T::Sum>,
        groups: LaneGroups,
    ) {
        let features = y.cols as usize;
        let mut first_feature = 0;
        while first_feature < features {
            let feature = first_feature + groups.vector() as usize * WIDTH;
            // SAFETY: the vector is in the row; no other warp joins this row.
            unsafe {
                let vector = feature.min(features - WIDTH);
                let of_group = self.join_every::<T::Sum, R, WIDTH>(items, vector, features, groups);
                let results = join_groups::<T::Sum, R, WIDTH>(groups, of_group);
                if groups.group() == 0 {
                    let output = LaneOutput {
                        row: self.row as usize,
                        y,
                        items,
                        row_of_y: None,
                        feature: feature as u32,
                        features: y.cols,
                    };
                    RowEpilogue::<T>::write::<1, WIDTH, 1>(scaling, output, [results]);
                }
            }
            first_feature += groups.lanes() as usize * WIDTH;
        }
    }

    /// The parts that a group of lanes joins: each group has every part after as many as there are groups.
    ///
    /// # Safety
    ///
    /// All parts are stored; there are `WIDTH` features from `feature` on.
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over the arrays are not unrolled, and put them into local memory"
    )]
    #[inline(always)]
    unsafe fn join_every<S: Real + Operand<Sum = S>, R: Reducer, const WIDTH: usize>(
        self,
        items: &Items<S>,
        feature: usize,
        features: usize,
        groups: LaneGroups,
    ) -> [S; WIDTH] {
        let parts = self.last - self.first + 1;
        let mut joined = [R::start(); WIDTH];
        let mut k = groups.group();
        while k < parts {
            let some: [[S; WIDTH]; UNROLL] = array::from_fn(|i| {
                let k = k + i as u32 * groups.count();
                if k >= parts {
                    return [R::start(); WIDTH];
                }
                let part = if k == 0 {
                    tail(self.first)
                } else {
                    head(self.first + k)
                };
                // SAFETY: the task has stored this part.
                let vector =
                    unsafe { S::load_mut::<WIDTH>(items.partial, part * features + feature) };
                array::from_fn(|f| S::get(&vector, f))
            });
            for i in 0..UNROLL {
                joined = array::from_fn(|f| R::join(joined[f], some[i][f]));
            }
            k += UNROLL as u32 * groups.count();
        }
        joined
    }
}
