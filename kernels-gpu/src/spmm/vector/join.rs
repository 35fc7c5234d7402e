//! The rows that the tasks of the kernel `vector` cut: how their parts are joined.
//!
//! Parts of the same block meet in shared memory. Parts of several blocks are left in device memory, and the block that comes
//! last with one, by a counter of the row's, joins them all. Which block that is, is chance; the order in which it takes
//! the parts is not, so that the result has the same bits every time.
//!
//! A second kernel that joined the parts took 8 of 36 us on a matrix of 4267 rows and two million nonzeros at 32 features, most of it
//! the launch and a chain of loads that nothing else hides.

use super::super::element::Operand;
use super::super::reduction::Reduce;
use super::super::tasks;
use super::BLOCK;
use super::row_end::{Results, RowEnd};
use super::run::Run;
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// No row.
const NONE: u32 = u32::MAX;

/// Parts of a row whose loads are in flight together.
const UNROLL: u32 = 4;

#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
impl<T: Operand, R: Reduce, E: RowEnd<T>, const LANES: u32, const WIDTH: usize>
    Run<'_, T, R, E, LANES, WIDTH>
{
    /// Tasks of a block.
    const TASKS: u32 = BLOCK / LANES;

    /// Ends the tasks of a block: writes the rows of which it has the last part that was missing.
    ///
    /// A row that began in a task and goes on is joined by the task's sub-warp, with the heads of the tasks after it; one that
    /// began before the block by the first sub-warp.
    ///
    /// # Safety
    ///
    /// The kernel's contract. All threads of the block call it, for the same tile of features.
    #[inline(always)]
    pub(super) unsafe fn join(&self, tile: u32) {
        if self.items.partial.address() == 0 {
            // No task starts inside a row.
            return;
        }
        let complete = shared_array!(u32; 2);
        let (in_block, group) = (self.task % Self::TASKS, self.task / Self::TASKS);
        // SAFETY: the row is one of A; heads are read after the barrier, and only those of the row.
        unsafe {
            let goes_on = self.task < self.items.count
                && self.row < self.a.rows
                && self.end > self.a.row_ptr.load(self.row as usize);
            if goes_on && self.begun_before {
                self.keep(self.so_far);
            }
            if thread::thread_idx_x() < 2 {
                complete.store(thread::thread_idx_x() as usize, NONE);
            }
            thread::sync_threads();
            if in_block == 0 && self.task < self.items.count {
                let row = self.items.row.load(self.task as usize);
                if row < self.a.rows
                    && self.items.start.load(self.task as usize) > self.a.row_ptr.load(row as usize)
                {
                    let (_, head) = self.with_heads([[R::start(); WIDTH]; 2], row, 0);
                    self.leave_part(2 * group, head, row, tile, complete);
                }
            }
            if goes_on && !self.begun_before {
                let (ends, joined) = self.with_heads(self.so_far, self.row, in_block + 1);
                if ends {
                    self.write_row(self.row, joined);
                } else {
                    self.leave_part(2 * group + 1, joined, self.row, tile, complete.offset(1));
                }
            }
            thread::sync_threads();
            for which in 0..2 {
                let row = complete.load(which);
                if row != NONE {
                    self.join_parts(row);
                }
            }
        }
    }

    /// A row's part so far joined with the heads of the block's tasks from `first` on; and whether the row ends there.
    #[inline(always)]
    unsafe fn with_heads(
        &self,
        mut joined: Results<T::Sum, WIDTH>,
        row: u32,
        first: u32,
    ) -> (bool, Results<T::Sum, WIDTH>) {
        // SAFETY: the row is one of A, and its tasks after the first have left heads.
        unsafe {
            let last = tasks::last(&self.a.row_ptr, row, self.items)
                - self.task / Self::TASKS * Self::TASKS;
            let mut in_block = first;
            while in_block <= last.min(Self::TASKS - 1) {
                joined = Self::joined(joined, self.kept(in_block));
                in_block += 1;
            }
            (last < Self::TASKS, joined)
        }
    }

    #[inline(always)]
    fn joined(
        one: Results<T::Sum, WIDTH>,
        other: Results<T::Sum, WIDTH>,
    ) -> Results<T::Sum, WIDTH> {
        array::from_fn(|pass| {
            if pass < Self::PASSES {
                array::from_fn(|k| R::join(one[pass][k], other[pass][k]))
            } else {
                one[pass]
            }
        })
    }

    /// Leaves part `part`, one of those of a row that is cut between blocks, and tells `complete` if no other is missing.
    #[inline(always)]
    unsafe fn leave_part(
        &self,
        part: u32,
        results: Results<T::Sum, WIDTH>,
        row: u32,
        tile: u32,
        complete: Shared<u32>,
    ) {
        let lane = warp::lane_id();
        let sub_warp = u32::MAX >> (32 - LANES) << (lane / LANES * LANES);
        // SAFETY: the lane's features of a part that is this sub-warp's; a counter for each group and tile.
        unsafe {
            for pass in 0..Self::PASSES {
                let feature = self.feature + pass * (LANES as usize * WIDTH);
                if feature < self.features {
                    let index = part as usize * self.features + feature;
                    T::Sum::store(self.items.partial, index, results[pass]);
                }
            }
            thread::device_fence();
            warp::sync_warp(sub_warp);
            if lane % LANES == 0 {
                let (first, last) = self.groups(row);
                let groups = self.items.count.div_ceil(Self::TASKS);
                let counter = tile as usize * groups as usize + first as usize;
                let there = self.items.arrived.atomic_add(Scope::Device, counter, 1);
                if there == last - first {
                    // The next run counts from zero again.
                    self.items.arrived.atomic_store(Scope::Device, counter, 0);
                    complete.store(0, row);
                }
            }
        }
    }

    /// The first and the last group of tasks that a cut row has a part in.
    #[inline(always)]
    unsafe fn groups(&self, row: u32) -> (u32, u32) {
        // SAFETY: a row of A.
        unsafe {
            let first = tasks::first(&self.a.row_ptr, row, self.items.task_size);
            let last = tasks::last(&self.a.row_ptr, row, self.items);
            (first / Self::TASKS, last / Self::TASKS)
        }
    }

    /// Joins all parts of a row that is cut between blocks, and writes it; by all threads of the block.
    ///
    /// The first part is the tail of the group in which the row starts, the others are the heads of those after it. The
    /// sub-warps take them in turn, and the first one joins what they have.
    #[inline(always)]
    unsafe fn join_parts(&self, row: u32) {
        let in_block = self.task % Self::TASKS;
        // SAFETY: the parts were left before the counter said so; heads are written and read with a barrier between.
        unsafe {
            thread::device_fence();
            let (first, last) = self.groups(row);
            let mut joined = [[R::start(); WIDTH]; 2];
            if in_block == 0 {
                joined = self.part(2 * first + 1);
            }
            let mut group = first + 1 + in_block;
            while group + (UNROLL - 1) * Self::TASKS <= last {
                let parts: [Results<T::Sum, WIDTH>; UNROLL as usize] =
                    array::from_fn(|k| self.part(2 * (group + k as u32 * Self::TASKS)));
                let low = Self::joined(parts[0], parts[1]);
                joined = Self::joined(joined, Self::joined(low, Self::joined(parts[2], parts[3])));
                group += UNROLL * Self::TASKS;
            }
            while group <= last {
                joined = Self::joined(joined, self.part(2 * group));
                group += Self::TASKS;
            }
            self.keep(joined);
            thread::sync_threads();
            if in_block == 0 {
                let mut other = 1;
                while other < Self::TASKS.min(last - first) {
                    joined = Self::joined(joined, self.kept(other));
                    other += 1;
                }
                self.write_row(row, joined);
            }
            thread::sync_threads();
        }
    }

    /// The lane's features of a part that another block may have left; past the last feature anything.
    #[inline(always)]
    unsafe fn part(&self, part: u32) -> Results<T::Sum, WIDTH> {
        array::from_fn(|pass| {
            let feature = self.feature + pass * (LANES as usize * WIDTH);
            let index = part as usize * self.features + feature.min(self.features - WIDTH);
            array::from_fn(|k| {
                if pass < Self::PASSES {
                    // Past the first-level cache, which may hold what was there before.
                    // SAFETY: a part that was left.
                    unsafe { self.items.partial.atomic_load(Scope::Device, index + k) }
                } else {
                    R::start()
                }
            })
        })
    }

    /// Leaves results where the block finds them.
    #[inline(always)]
    pub(super) unsafe fn keep(&self, results: Results<T::Sum, WIDTH>) {
        let thread = thread::thread_idx_x();
        for pass in 0..Self::PASSES {
            for k in 0..WIDTH {
                // SAFETY: the thread's own place.
                unsafe { kept().store(index_of_kept::<WIDTH>(pass, k, thread), results[pass][k]) };
            }
        }
    }

    /// What the lane of a sub-warp of the block has kept for the same features.
    #[inline(always)]
    unsafe fn kept(&self, sub_warp: u32) -> Results<T::Sum, WIDTH> {
        let thread = sub_warp * LANES + warp::lane_id() % LANES;
        array::from_fn(|pass| {
            array::from_fn(|k| {
                if pass < Self::PASSES {
                    // SAFETY: the caller knows that the sub-warp has.
                    unsafe { kept().load(index_of_kept::<WIDTH>(pass, k, thread)) }
                } else {
                    R::start()
                }
            })
        })
    }
}

/// What the block's sub-warps keep for each other, in shared memory.
#[inline(always)]
fn kept<S: Element>() -> Shared<S> {
    shared::dynamic_shared_mem()
}

/// Where a thread's element is: neighbouring threads' elements lie in neighbouring banks.
#[inline(always)]
fn index_of_kept<const WIDTH: usize>(pass: usize, k: usize, thread: u32) -> usize {
    (pass * WIDTH + k) * BLOCK as usize + thread as usize
}
