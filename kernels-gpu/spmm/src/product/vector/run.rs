//! A sub-warp of the kernel `vector` on its way through an item: one task, or several that follow each other.

use crate::items::Items;
use crate::product::lane_columns::LaneColumns;
use crate::product::reduction::Reducer;
use crate::product::row_epilogue::{LaneOutput, Results, RowEpilogue};
use core::array;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

mod split_rows;

/// Nonzeros whose loads of X are in flight together.
const UNROLL: usize = 8;

/// A sub-warp on its way through an item.
pub(super) struct Run<
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
    writer: &'a E,
    /// The lane's first feature; its second vector starts `LANES * WIDTH` later.
    feature: u32,
    features: u32,
    /// The next nonzero, and the one after the item's last.
    position: u32,
    item_end: u32,
    /// The row of the next nonzero, and the row in which the item ends.
    row: u32,
    last_row: u32,
    /// The nonzero after the last of `row`, and after the last of the row that follows.
    row_end: u32,
    following_row_end: u32,
    /// The rows of Y for `row` and for the row that follows, if they are looked up ahead.
    row_of_y: u32,
    following_row_of_y: u32,
    /// Whether `row` started in an earlier item.
    begun_before: bool,
    /// The reduction of the row's products so far.
    accumulators: Results<T::Sum, WIDTH, PASSES>,
    /// Column and value of the nonzero that the lane holds.
    held: (u32, T::Sum),
    reduction: PhantomData<R>,
}

#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
impl<
    'a,
    T: Operand,
    R: Reducer,
    E: RowEpilogue<T>,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
> Run<'a, T, R, E, LANES, WIDTH, PASSES>
{
    /// At the start of an item. A sub-warp past the last item gets an empty one, because its warp's shuffles want all
    /// lanes.
    ///
    /// # Safety
    ///
    /// The kernel's contract.
    #[inline(always)]
    pub(crate) unsafe fn start(
        a: &'a Csr<SumOf<T>>,
        x: &Dense<T>,
        y: &'a DenseMut<T>,
        items: &'a Items<SumOf<T>>,
        writer: &'a E,
        item: u32,
        first_feature: u32,
    ) -> Self {
        let lane = warp::lane_id() % LANES;
        let feature = first_feature + lane * WIDTH as u32;
        let mut run = Self {
            a,
            x: LaneColumns::new(x, feature as usize),
            y,
            items,
            writer,
            feature,
            features: x.cols,
            held: (0, T::Sum::ZERO),
            position: 0,
            item_end: 0,
            row: 0,
            last_row: 0,
            row_end: 0,
            following_row_end: 0,
            row_of_y: 0,
            following_row_of_y: 0,
            begun_before: false,
            accumulators: [[R::start(); WIDTH]; PASSES],
            reduction: PhantomData,
        };
        if item < items.count {
            // SAFETY: `item` is an item, so its first task and the one after its last have a start, whose row is a row
            // of A or the number of rows.
            unsafe {
                let next = items.large.first_task(item + 1) as usize;
                let first = items.large.first_task(item) as usize;
                run.position = items.start.load(first);
                run.item_end = items.start.load(next);
                run.row = items.row.load(first);
                run.last_row = items.row.load(next);
                run.held = run.nonzero(run.position + lane);
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

    /// Accumulates the item's nonzeros, `LANES` at a time; all lanes of the warp go on until its last sub-warp is done.
    ///
    /// # Safety
    ///
    /// The kernel's contract.
    #[inline(always)]
    pub(crate) unsafe fn stream(&mut self) {
        let lane = warp::lane_id() % LANES;
        // SAFETY: `batch` reads rows of X for columns of A, and writes rows of this item.
        unsafe {
            // The vote is not the loop's own condition: a collective operation stays where it is, and the loop would
            // have a branch more.
            let mut is_busy = warp::any(FULL_MASK, self.position < self.item_end);
            while is_busy {
                let next = self.nonzero(self.position.saturating_add(LANES + lane));
                let mut k = 0;
                loop {
                    self.batch(k);
                    k += UNROLL as u32;
                    is_busy = warp::any(FULL_MASK, self.position < self.item_end);
                    // A batch wholly past the item's end would load as much as any other.
                    if k >= LANES || !is_busy {
                        break;
                    }
                }
                self.held = next;
            }
        }
    }

    /// Column and value of a nonzero; past the item's end column 0, which is loaded and not used.
    #[inline(always)]
    unsafe fn nonzero(&self, k: u32) -> (u32, T::Sum) {
        if k < self.item_end {
            // SAFETY: `k` is below the item's end, so it is a nonzero of A.
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

    /// Accumulates up to `UNROLL` nonzeros, which the lanes from `first` on hold.
    #[inline(always)]
    unsafe fn batch(&mut self, first: u32) {
        // SAFETY: each column of A is below the number of rows of X, by the kernel's contract.
        unsafe {
            let cols: [u32; UNROLL] =
                array::from_fn(|i| warp::shfl_idx(FULL_MASK, self.held.0, first + i as u32, LANES));
            let elements: [[T::Vector; PASSES]; UNROLL] = array::from_fn(|i| self.x.load(cols[i]));
            let values: [T::Sum; UNROLL] =
                array::from_fn(|i| warp::shfl_idx(FULL_MASK, self.held.1, first + i as u32, LANES));
            let count = self
                .item_end
                .saturating_sub(self.position)
                .min(UNROLL as u32);
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
                // Up to the row's end. Comparisons with constants keep the arrays in registers.
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
            let (so_far, elements) = (self.accumulators[pass], elements[pass]);
            self.accumulators[pass] =
                array::from_fn(|k| R::take(value, T::get(&elements, k), so_far[k]));
        }
    }

    /// Writes the rows of the item that end at nonzero `position`: the present one, and empty ones after it.
    #[inline(always)]
    unsafe fn end_rows(&mut self, position: u32) {
        while self.row_end == position && self.row < self.last_row {
            // SAFETY: the row is before `last_row`, so it is a row of A that ends in this item.
            unsafe {
                if self.begun_before {
                    self.keep_head();
                } else {
                    self.store_row(self.row, self.accumulators);
                }
                self.begun_before = false;
                self.accumulators = [[R::start(); WIDTH]; PASSES];
                self.row += 1;
                self.row_end = self.following_row_end;
                self.row_of_y = self.following_row_of_y;
                self.load_next();
            }
        }
    }

    #[inline(always)]
    unsafe fn load_next(&mut self) {
        if self.row + 1 < self.a.rows {
            // SAFETY: `row + 1 < a.rows`, checked above, so `row_ptr` has the number at `row + 2`.
            unsafe {
                self.following_row_end = self.a.row_ptr.load(self.row as usize + 2);
                self.following_row_of_y = self.look_up(self.row + 1);
            }
        }
    }

    /// The row of Y for a row of A, if the epilogue needs it ahead.
    #[inline(always)]
    unsafe fn look_up(&self, row: u32) -> u32 {
        if const { E::LOOKS_AHEAD } {
            // SAFETY: the callers' rows are rows of A.
            unsafe { self.items.row_of_y(row as usize) as u32 }
        } else {
            0
        }
    }

    /// Writes the lane's features of a row that is complete and perhaps empty.
    #[inline(always)]
    unsafe fn store_row(&self, row: u32, mut results: Results<T::Sum, WIDTH, PASSES>) {
        let row = row as usize;
        // SAFETY: the row is a row of A, and no other sub-warp writes its row of Y.
        unsafe {
            if R::MINDS_EMPTY_ROWS && self.row_end == self.a.row_ptr.load(row) {
                results = [[T::Sum::ZERO; WIDTH]; PASSES];
            }
            let output = LaneOutput {
                row,
                y: self.y,
                items: self.items,
                row_of_y: E::LOOKS_AHEAD.then_some(self.row_of_y),
                feature: self.feature,
                features: self.features,
            };
            self.writer.write::<LANES, WIDTH, PASSES>(output, results);
        }
    }
}

const _: () = assert!(UNROLL == 8 && WARP_SIZE.is_multiple_of(UNROLL as u32));
