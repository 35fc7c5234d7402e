//! A warp on its way through its task: a chunk of nonzeros after the other, first their sums, then their rows.

use super::chunk::{Chunk, ChunkSums};
use crate::items::Items;
use crate::product::lane_groups::{LaneGroups, join_groups};
use crate::product::reduction::Reducer;
use crate::product::row_epilogue::{LaneOutput, RowEpilogue};
use crate::product::scaling::Scaling;
use crate::product::split_rows;
use core::array;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

/// A warp on its way through its task.
pub(super) struct Walk<'a, T: Operand, R, const WIDTH: usize> {
    a: &'a Csr<SumOf<T>>,
    y: &'a DenseMut<T>,
    items: &'a Items<SumOf<T>>,
    scaling: &'a Scaling<SumOf<T>>,
    groups: LaneGroups,
    sums: ChunkSums<'a, T, WIDTH>,
    task: u32,
    /// The lane's first feature.
    feature: usize,
    features: usize,
    /// The next nonzero, and the one after the task's last.
    position: u32,
    task_end: u32,
    /// The row of the next nonzero, and the row in which the task ends.
    row: u32,
    last_row: u32,
    /// Whether the task starts inside a row, and whether that is `row` still.
    starts_inside: bool,
    began_before: bool,
    /// The lane's share of the part of `row` in the chunks before.
    carry: [T::Sum; WIDTH],
    reduction: PhantomData<R>,
}

impl<'a, T: Operand, R: Reducer, const WIDTH: usize> Walk<'a, T, R, WIDTH> {
    /// At the start of a task, for the tile of features from `first_feature` on. `room` is the warp's shared memory.
    ///
    /// # Safety
    ///
    /// The kernel's contract; `task` is an item.
    #[inline(always)]
    pub unsafe fn start(
        (a, x, y): (&'a Csr<T::Sum>, &Dense<T>, &'a DenseMut<T>),
        (items, scaling): (&'a Items<T::Sum>, &'a Scaling<T::Sum>),
        (groups, room): (LaneGroups, Shared<T::Sum>),
        (task, first_feature): (u32, usize),
    ) -> Self {
        let feature = first_feature + groups.vector() as usize * WIDTH;
        let t = task as usize;
        // SAFETY: the task and the one after it have a start, whose row is a row of A or the number of rows.
        unsafe {
            let (row, position) = (items.row.load(t), items.start.load(t));
            let starts_inside = row < a.rows && position > a.row_ptr.load(row as usize);
            Self {
                a,
                y,
                items,
                scaling,
                groups,
                sums: ChunkSums::new(a, x, groups, feature, room),
                task,
                feature,
                features: x.cols as usize,
                position,
                task_end: items.start.load(t + 1),
                row,
                last_row: items.row.load(t + 1),
                starts_inside,
                began_before: starts_inside,
                carry: [R::start(); WIDTH],
                reduction: PhantomData,
            }
        }
    }

    /// Writes the rows that end in the task, and leaves the part of the row that goes on in `carry`.
    ///
    /// # Safety
    ///
    /// The kernel's contract. All lanes of the warp call it.
    #[inline(always)]
    pub unsafe fn stream(&mut self) {
        // SAFETY: the nonzeros of the chunks are A's. Barriers separate what lanes write to shared memory from what
        // others read.
        unsafe {
            self.sums.clear_heads();
            warp::sync_warp(FULL_MASK);
            loop {
                let chunk = Chunk {
                    begin: self.position,
                    end: (self.position.saturating_add(self.sums.most())).min(self.task_end),
                };
                // In flight while the products are computed.
                let row_end = self.row_end(warp::lane_id());
                let products = self.sums.products::<R>(chunk);
                let first_row_end = warp::shfl_idx(FULL_MASK, row_end, 0, WARP_SIZE);
                if first_row_end >= chunk.end {
                    self.carry = self.sums.join_all::<R>(chunk, &products, self.carry);
                    self.position = chunk.end;
                } else {
                    self.sums.keep(&products);
                    self.mark_heads(chunk, row_end);
                    warp::sync_warp(FULL_MASK);
                    self.sums.compute::<R>();
                    warp::sync_warp(FULL_MASK);
                }
                if first_row_end <= chunk.end {
                    self.end_rows(chunk, row_end);
                    self.sums.clear_heads();
                    warp::sync_warp(FULL_MASK);
                }
                if chunk.end == self.task_end {
                    return;
                }
            }
        }
    }

    /// Marks the nonzeros of the chunk with which a row begins. `row_end` is the end of the row that many after `row`
    /// as the lane's number says.
    #[inline(always)]
    unsafe fn mark_heads(&self, chunk: Chunk, mut row_end: u32) {
        // SAFETY: the marks are of this chunk.
        unsafe {
            if warp::lane_id() == 0 {
                // What lies after the chunk is not added to its last row.
                self.sums.mark(chunk, chunk.end);
            }
            let mut rows = warp::lane_id();
            loop {
                // The next row begins where this one ends.
                let is_in_chunk = row_end < chunk.end;
                if is_in_chunk {
                    self.sums.mark(chunk, row_end);
                }
                if !warp::all(FULL_MASK, is_in_chunk) {
                    return;
                }
                rows += WARP_SIZE;
                row_end = self.row_end(rows);
            }
        }
    }

    /// The end of the row that many after `row`; the greatest number past the last row.
    #[inline(always)]
    unsafe fn row_end(&self, rows: u32) -> u32 {
        let row = self.row.saturating_add(rows);
        if row < self.a.rows {
            // SAFETY: the row is a row of A.
            unsafe { self.a.row_ptr.offset_rows(row, 4).load(1) }
        } else {
            u32::MAX
        }
    }

    /// Writes the rows that end in the chunk, a group for each, and carries the part of the last one. `row_end` is the
    /// end of the row that many after `row` as the lane's number says.
    #[inline(always)]
    unsafe fn end_rows(&mut self, chunk: Chunk, row_end: u32) {
        let groups = self.groups;
        let mut row_end = warp::shfl_idx(FULL_MASK, row_end, groups.group(), WARP_SIZE);
        let mut carry = join_groups::<T::Sum, R, WIDTH>(groups, self.carry);
        loop {
            let row = self.row.saturating_add(groups.group());
            // SAFETY: `row_end` wants nothing more.
            let following_end = unsafe { self.row_end(groups.count() + groups.group()) };
            let row_before_end = warp::shfl_up(FULL_MASK, row_end, groups.lanes(), WARP_SIZE);
            let is_first = groups.group() == 0;
            let start = if is_first {
                self.position
            } else {
                row_before_end
            };
            let ends = row < self.last_row && row_end <= chunk.end;
            let ending = groups.count_in(warp::ballot(FULL_MASK, ends));
            // SAFETY: the sums of the chunk are there; a row that ends here is a row of A, and no other warp writes it.
            unsafe {
                let mut sum = [R::start(); WIDTH];
                let end = row_end.min(chunk.end);
                if start < end {
                    sum = self.sums.up_to(chunk, end);
                }
                if is_first {
                    sum = array::from_fn(|k| R::join(carry[k], sum[k]));
                }
                if ends {
                    if is_first && self.began_before {
                        self.store_part(split_rows::head(self.task), sum);
                    } else {
                        self.store_row(row, row_end, sum);
                    }
                }
                self.began_before &= ending == 0;
                self.row += ending;
                if ending == groups.count() {
                    self.position = warp::shfl_idx(FULL_MASK, row_end, WARP_SIZE - 1, WARP_SIZE);
                    carry = [R::start(); WIDTH];
                    row_end = following_end;
                } else {
                    self.position = chunk.end;
                    // It goes on in the group after those whose rows end.
                    let is_last = groups.group() == ending;
                    self.carry = if is_last { sum } else { [R::start(); WIDTH] };
                    return;
                }
            }
        }
    }

    /// Writes the lane's features of a row that is complete and perhaps empty.
    #[inline(always)]
    unsafe fn store_row(&self, row: u32, row_end: u32, mut sum: [T::Sum; WIDTH]) {
        let row = row as usize;
        // SAFETY: the row is a row of A, and no other warp writes its row of Y.
        unsafe {
            if R::MINDS_EMPTY_ROWS && row_end == self.a.row_ptr.load(row) {
                sum = [T::Sum::ZERO; WIDTH];
            }
            let output = LaneOutput {
                row,
                y: self.y,
                items: self.items,
                row_of_y: None,
                feature: self.feature as u32,
                features: self.features as u32,
            };
            RowEpilogue::<T>::write::<1, WIDTH, 1>(self.scaling, output, [sum]);
        }
    }

    /// Stores the part of the row that goes on after the task, if there is one. Returns whether the task has a part of
    /// any row.
    ///
    /// # Safety
    ///
    /// The kernel's contract; the task has been streamed.
    #[inline(always)]
    pub unsafe fn store_parts(&self) -> bool {
        // SAFETY: `row` is compared with the rows of A before it is used; the part is this task's.
        unsafe {
            let goes_on =
                self.row < self.a.rows && self.task_end > self.a.row_ptr.load(self.row as usize);
            let carry = join_groups::<T::Sum, R, WIDTH>(self.groups, self.carry);
            if goes_on && self.groups.group() == 0 {
                let part = if self.began_before {
                    split_rows::head(self.task)
                } else {
                    split_rows::tail(self.task)
                };
                self.store_part(part, carry);
            }
            goes_on || self.starts_inside
        }
    }

    /// Stores the lane's features of a part of a split row.
    #[inline(always)]
    unsafe fn store_part(&self, part: usize, sum: [T::Sum; WIDTH]) {
        if self.feature < self.features {
            let index = part * self.features + self.feature;
            // SAFETY: the plan has room for two parts of each task; no other warp writes this one.
            unsafe { T::Sum::store(self.items.partial, index, sum) };
        }
    }
}
