//! A sub-warp on its way through a task of the kernel `vector`.

use crate::items::Items;
use crate::product::lane_columns::LaneColumns;
use crate::product::reduction::Reduce;
use crate::product::row_end::{Place, Results, RowEnd};
use crate::product::tasks::last_item;
use crate::product::vector::variant::block;
use core::array;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

/// Nonzeros whose loads of X are in flight together.
const UNROLL: usize = 8;

/// A sub-warp on its way through a task.
pub(crate) struct Run<
    'a,
    T: Operand,
    R,
    E,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
> {
    a: &'a Csr<SumOf<T>>,
    x: LaneColumns<T, LANES, WIDTH, PASSES>,
    y: &'a DenseMut<T>,
    items: &'a Items<SumOf<T>>,
    end_of_row: &'a E,
    task: u32,
    /// The lane's first feature; its second vector is `LANES * WIDTH` further on.
    feature: usize,
    features: usize,
    /// The nonzero that comes next, and where the task ends.
    position: u32,
    end: u32,
    /// The row of that nonzero, and where the task ends.
    row: u32,
    end_row: u32,
    /// Where this row and the next one end.
    row_end: u32,
    next_end: u32,
    /// The rows of Y for this row and the next one, if the row's end wants them.
    row_of_y: u32,
    next_row_of_y: u32,
    /// Whether the row started in an earlier task.
    begun_before: bool,
    /// The reduction of the row's products so far.
    so_far: Results<T::Sum, WIDTH, PASSES>,
    /// Column and value of the nonzero that the lane holds.
    mine: (u32, T::Sum),
    reduction: PhantomData<R>,
}

#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
impl<
    'a,
    T: Operand,
    R: Reduce,
    E: RowEnd<T>,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
> Run<'a, T, R, E, LANES, WIDTH, PASSES>
{
    /// # Safety
    ///
    /// The kernel's contract. A sub-warp past the last task gets an empty one, as its warp's shuffles want all lanes.
    #[inline(always)]
    pub(crate) unsafe fn start(
        a: &'a Csr<SumOf<T>>,
        x: &Dense<T>,
        y: &'a DenseMut<T>,
        items: &'a Items<SumOf<T>>,
        end_of_row: &'a E,
        task: u32,
        first_feature: u32,
    ) -> Self {
        let lane = warp::lane_id() % LANES;
        let feature = first_feature as usize + lane as usize * WIDTH;
        let features = x.cols as usize;
        let mut run = Self {
            a,
            x: LaneColumns::new(x, feature),
            y,
            items,
            end_of_row,
            task,
            feature,
            features,
            mine: (0, T::Sum::ZERO),
            position: 0,
            end: 0,
            row: 0,
            end_row: 0,
            row_end: 0,
            next_end: 0,
            row_of_y: 0,
            next_row_of_y: 0,
            begun_before: false,
            so_far: [[R::start(); WIDTH]; PASSES],
            reduction: PhantomData,
        };
        if task < items.count {
            // SAFETY: `task` is a task, and its rows are rows of A.
            unsafe {
                let next = items.large.first_task(task + 1) as usize;
                let task = items.large.first_task(task) as usize;
                run.position = items.start.load(task);
                run.end = items.start.load(next);
                run.row = items.row.load(task);
                run.end_row = items.row.load(next);
                run.mine = run.nonzero(run.position + lane);
                if run.row < a.rows {
                    run.begun_before = run.position > a.row_ptr.load(run.row as usize);
                    run.row_end = a.row_ptr.load(run.row as usize + 1);
                    run.row_of_y = run.look_up(run.row);
                    run.load_next();
                    run.end_rows(run.position);
                }
            }
        }
        run
    }

    /// Takes the task's nonzeros, `LANES` at a time; all lanes of the warp go on until the last sub-warp is done.
    ///
    /// # Safety
    ///
    /// The kernel's contract.
    #[inline(always)]
    pub(crate) unsafe fn stream(&mut self) {
        let lane = warp::lane_id() % LANES;
        // SAFETY: nonzeros below the task's end.
        unsafe {
            while warp::any(FULL_MASK, self.position < self.end) {
                let next = self.nonzero(self.position.saturating_add(LANES + lane));
                let mut k = 0;
                loop {
                    self.batch(k);
                    k += UNROLL as u32;
                    // Many tasks end amid what the lanes hold; a batch of no nonzeros would load as much as one of eight.
                    if k >= LANES || !warp::any(FULL_MASK, self.position < self.end) {
                        break;
                    }
                }
                self.mine = next;
            }
        }
    }

    /// Column and value of a nonzero; past the task's end column 0, which may be loaded and is not used.
    #[inline(always)]
    unsafe fn nonzero(&self, k: u32) -> (u32, T::Sum) {
        if k < self.end {
            // SAFETY: a nonzero of A.
            unsafe {
                (
                    self.a.col_idx.load(k as usize),
                    self.a.values.load(k as usize),
                )
            }
        } else {
            (0, T::Sum::ZERO)
        }
    }

    /// Takes up to `UNROLL` nonzeros, which the lanes from `first` on hold.
    #[inline(always)]
    unsafe fn batch(&mut self, first: u32) {
        // SAFETY: columns are rows of X, features columns of X.
        unsafe {
            let cols: [u32; UNROLL] =
                array::from_fn(|i| warp::shfl_idx(FULL_MASK, self.mine.0, first + i as u32, LANES));
            let elements: [[T::Vector; PASSES]; UNROLL] = array::from_fn(|i| self.x.load(cols[i]));
            let values: [T::Sum; UNROLL] =
                array::from_fn(|i| warp::shfl_idx(FULL_MASK, self.mine.1, first + i as u32, LANES));
            let count = self.end.saturating_sub(self.position).min(UNROLL as u32);
            let mut done = 0;
            while done < count {
                let to_row_end = self.row_end - self.position;
                if done == 0 && count == UNROLL as u32 && to_row_end >= count {
                    unroll!(i in 0..8 {
                        self.take(values[i], elements[i]);
                    });
                    self.position += count;
                    self.end_rows(self.position);
                    break;
                }
                let stop = count.min(done + to_row_end);
                // Up to the row's end; the comparisons are with constants, so that the arrays stay in registers.
                unroll!(i in 0..8 {
                    if done <= i as u32 && (i as u32) < stop {
                        self.take(values[i], elements[i]);
                    }
                });
                self.position += stop - done;
                done = stop;
                self.end_rows(self.position);
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, value: T::Sum, elements: [T::Vector; PASSES]) {
        for pass in 0..PASSES {
            let (so_far, elements) = (self.so_far[pass], elements[pass]);
            self.so_far[pass] = array::from_fn(|k| R::take(value, T::get(&elements, k), so_far[k]));
        }
    }

    /// Writes the rows of the task that end before nonzero `position`: the one at hand, and empty ones after it.
    #[inline(always)]
    unsafe fn end_rows(&mut self, position: u32) {
        while self.row_end == position && self.row < self.end_row {
            // SAFETY: a row of Y, or the task's sums.
            unsafe {
                if self.begun_before {
                    self.keep_head();
                } else {
                    self.store_row(self.row, self.so_far);
                }
                self.begun_before = false;
                self.so_far = [[R::start(); WIDTH]; PASSES];
                self.row += 1;
                self.row_end = self.next_end;
                self.row_of_y = self.next_row_of_y;
                self.load_next();
            }
        }
    }

    #[inline(always)]
    unsafe fn load_next(&mut self) {
        if self.row + 1 < self.a.rows {
            // SAFETY: the row after this one is a row of A.
            unsafe {
                self.next_end = self.a.row_ptr.load(self.row as usize + 2);
                self.next_row_of_y = self.look_up(self.row + 1);
            }
        }
    }

    /// The row of Y for a row of A, if the row's end wants it.
    #[inline(always)]
    unsafe fn look_up(&self, row: u32) -> u32 {
        if const { E::LOOKS_AHEAD } {
            // SAFETY: a row of A.
            unsafe { self.items.row_of_y(row as usize) as u32 }
        } else {
            0
        }
    }

    /// Ends the task: the parts of rows that are cut are joined as far as the block's tasks go.
    ///
    /// A row that began in a task and goes on is joined by the task's sub-warp, with the heads of the tasks after it; one that
    /// began before the block by the first sub-warp. What is cut between blocks is left to the second kernel.
    ///
    /// # Safety
    ///
    /// The kernel's contract. All threads of the block call it.
    #[inline(always)]
    pub(crate) unsafe fn join(&self) {
        let tasks = block(LANES) / LANES;
        let (in_block, group) = (self.task % tasks, (self.task / tasks) as usize);
        // SAFETY: the row is one of A; heads are read after the barrier, and only those of the row.
        unsafe {
            let goes_on = self.task < self.items.count
                && self.row < self.a.rows
                && self.end > self.a.row_ptr.load(self.row as usize);
            if goes_on && self.begun_before {
                self.keep_head();
            }
            thread::sync_threads();
            if in_block == 0 && self.task < self.items.count {
                let task = self.items.large.first_task(self.task) as usize;
                let row = self.items.row.load(task);
                if row < self.a.rows
                    && self.items.start.load(task) > self.a.row_ptr.load(row as usize)
                {
                    let (_, head) = self.with_heads([[R::start(); WIDTH]; PASSES], row, 0);
                    self.store_part(2 * group, head);
                }
            }
            if goes_on && !self.begun_before {
                let (ends, joined) = self.with_heads(self.so_far, self.row, in_block + 1);
                if ends {
                    self.store_row(self.row, joined);
                } else {
                    self.store_part(2 * group + 1, joined);
                }
            }
        }
    }

    /// A row's part so far joined with the heads of the block's tasks from `first` on; and whether the row ends there.
    #[inline(always)]
    unsafe fn with_heads(
        &self,
        mut joined: Results<T::Sum, WIDTH, PASSES>,
        row: u32,
        first: u32,
    ) -> (bool, Results<T::Sum, WIDTH, PASSES>) {
        let tasks = block(LANES) / LANES;
        // SAFETY: the row is one of A, and its tasks after the first have left heads.
        unsafe {
            let row_end = self.a.row_ptr.load(row as usize + 1) - self.a.row_ptr.load(0);
            let last = last_item(row_end, row, self.items) - self.task / tasks * tasks;
            let mut in_block = first;
            while in_block <= last.min(tasks - 1) {
                let thread = in_block * LANES + warp::lane_id() % LANES;
                for pass in 0..PASSES {
                    let head: [T::Sum; WIDTH] = array::from_fn(|k| {
                        heads().load(head_index::<LANES, WIDTH>(pass, k, thread))
                    });
                    let so_far = joined[pass];
                    joined[pass] = array::from_fn(|k| R::join(so_far[k], head[k]));
                }
                in_block += 1;
            }
            (last < tasks, joined)
        }
    }

    /// Leaves the task's part of a row that began in an earlier one where the block finds it.
    #[inline(always)]
    unsafe fn keep_head(&self) {
        let thread = thread::thread_idx_x();
        for pass in 0..PASSES {
            for k in 0..WIDTH {
                // SAFETY: the thread's own place.
                unsafe {
                    heads().store(
                        head_index::<LANES, WIDTH>(pass, k, thread),
                        self.so_far[pass][k],
                    )
                };
            }
        }
    }

    /// Writes the lane's part of a row that is cut between blocks.
    #[inline(always)]
    unsafe fn store_part(&self, part: usize, results: Results<T::Sum, WIDTH, PASSES>) {
        for pass in 0..PASSES {
            let feature = self.feature + pass * (LANES as usize * WIDTH);
            if feature < self.features {
                let index = part * self.features + feature;
                // SAFETY: the lane's features of a part that is this sub-warp's.
                unsafe { T::Sum::store(self.items.partial, index, results[pass]) };
            }
        }
    }

    /// Writes the lane's features of a row that is complete and perhaps empty.
    #[inline(always)]
    unsafe fn store_row(&self, row: u32, mut results: Results<T::Sum, WIDTH, PASSES>) {
        let row = row as usize;
        // SAFETY: a row of A, and this sub-warp's row of Y.
        unsafe {
            if R::MINDS_EMPTY_ROWS && self.row_end == self.a.row_ptr.load(row) {
                results = [[T::Sum::ZERO; WIDTH]; PASSES];
            }
            let place = Place {
                row,
                y: self.y,
                items: self.items,
                row_of_y: E::LOOKS_AHEAD.then_some(self.row_of_y),
                feature: self.feature,
                features: self.features,
            };
            self.end_of_row
                .write::<LANES, WIDTH, PASSES>(place, results);
        }
    }
}

/// The heads of the block's tasks, in shared memory.
#[inline(always)]
fn heads<S: Element>() -> Shared<S> {
    shared::dynamic_shared_mem()
}

/// Where a thread's element of its task's head is: neighbouring threads' elements lie in neighbouring banks.
#[inline(always)]
fn head_index<const LANES: u32, const WIDTH: usize>(pass: usize, k: usize, thread: u32) -> usize {
    (pass * WIDTH + k) * block(LANES) as usize + thread as usize
}

const _: () = assert!(UNROLL == 8 && WARP_SIZE.is_multiple_of(UNROLL as u32));
