//! A warp on its way through its task: a chunk of nonzeros after the other, first their products, then their rows.

use super::lane_groups::LaneGroups;
use super::{LONG_ROW, split_rows};
use crate::items::Items;
use crate::product::lane_columns::LaneColumns;
use crate::product::reduction::Reducer;
use crate::product::row_epilogue::{LaneOutput, RowEpilogue};
use crate::product::scaling::Scaling;
use core::array;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

/// Products that a lane reads together.
const UNROLL: usize = 4;

/// A warp on its way through its task.
pub(super) struct Walk<'a, T: Operand, R, const WIDTH: usize, const LOADS: usize> {
    a: &'a Csr<SumOf<T>>,
    x: LaneColumns<T, 1, WIDTH, 1>,
    y: &'a DenseMut<T>,
    items: &'a Items<SumOf<T>>,
    scaling: &'a Scaling<SumOf<T>>,
    groups: LaneGroups,
    /// The products of a chunk, in shared memory.
    products: Shared<SumOf<T>>,
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
    /// Whether `row` began in an earlier task.
    began_before: bool,
    /// The part of `row` in the chunks before: the same in all groups.
    carry: [T::Sum; WIDTH],
    reduction: PhantomData<R>,
}

/// The nonzeros of a lane's row that lie in a chunk, counted from the chunk's first.
#[derive(Clone, Copy)]
struct Piece {
    start: u32,
    end: u32,
}

#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
impl<'a, T: Operand, R: Reducer, const WIDTH: usize, const LOADS: usize>
    Walk<'a, T, R, WIDTH, LOADS>
{
    /// At the start of a task, for the tile of features from `first_feature` on.
    ///
    /// # Safety
    ///
    /// The kernel's contract; `task` is an item.
    #[inline(always)]
    pub unsafe fn start(
        (a, x, y): (&'a Csr<T::Sum>, &Dense<T>, &'a DenseMut<T>),
        (items, scaling): (&'a Items<T::Sum>, &'a Scaling<T::Sum>),
        (groups, products): (LaneGroups, Shared<T::Sum>),
        (task, first_feature): (u32, usize),
    ) -> Self {
        let feature = first_feature + groups.vector() as usize * WIDTH;
        let t = task as usize;
        // SAFETY: the task and the one after it have a start, whose row is a row of A or the number of rows.
        unsafe {
            let (row, position) = (items.row.load(t), items.start.load(t));
            Self {
                a,
                x: LaneColumns::new(x, feature),
                y,
                items,
                scaling,
                groups,
                products,
                task,
                feature,
                features: x.cols as usize,
                position,
                task_end: items.start.load(t + 1),
                row,
                last_row: items.row.load(t + 1),
                began_before: row < a.rows && position > a.row_ptr.load(row as usize),
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
        loop {
            let chunk = self.position;
            let chunk_end = chunk
                .saturating_add(self.groups.count() * LOADS as u32)
                .min(self.task_end);
            // SAFETY: the nonzeros of the chunk are A's; the barriers separate the writes of products from their reads.
            unsafe {
                if chunk < chunk_end {
                    self.multiply(chunk_end);
                }
                warp::sync_warp(FULL_MASK);
                self.end_rows(chunk, chunk_end);
                warp::sync_warp(FULL_MASK);
            }
            if chunk_end == self.task_end {
                return;
            }
        }
    }

    /// Writes the products of the nonzeros from `position` up to `end` to shared memory. Lanes past the end multiply
    /// the last nonzero again, and nobody reads these products.
    #[inline(always)]
    unsafe fn multiply(&mut self, end: u32) {
        let groups = self.groups;
        // SAFETY: the nonzeros are below `end`, so they are A's, whose columns are rows of X; a lane writes its own
        // places.
        unsafe {
            let nonzeros: [usize; LOADS] = array::from_fn(|i| {
                let k = i as u32 * groups.count() + groups.group();
                self.position.saturating_add(k).min(end - 1) as usize
            });
            let cols: [u32; LOADS] = array::from_fn(|i| self.a.col_idx.load(nonzeros[i]));
            let values: [T::Sum; LOADS] = array::from_fn(|i| self.a.values.load(nonzeros[i]));
            let elements: [[T::Vector; 1]; LOADS] = array::from_fn(|i| self.x.load(cols[i]));
            for i in 0..LOADS {
                let product = |k| R::take(values[i], T::get(&elements[i][0], k), R::start());
                let place = groups.place::<T::Sum, WIDTH>(i as u32 * groups.count() + groups.group());
                self.products.store_array::<WIDTH>(place, array::from_fn(product));
            }
        }
    }

    /// Writes the rows that end in the chunk, a group for each, and carries the part of the last one.
    #[inline(always)]
    unsafe fn end_rows(&mut self, chunk: u32, chunk_end: u32) {
        let groups = self.groups;
        loop {
            let row = self.row.saturating_add(groups.group());
            // SAFETY: `row` is compared with the rows of A before it is used.
            let row_end = if row < self.a.rows {
                unsafe { self.a.row_ptr.load(row as usize + 1) }
            } else {
                u32::MAX
            };
            let row_before_end = warp::shfl_up(FULL_MASK, row_end, groups.lanes(), WARP_SIZE);
            let is_first = groups.group() == 0;
            let start = if is_first { self.position } else { row_before_end };
            let piece = Piece {
                start: start.min(chunk_end) - chunk,
                end: row_end.min(chunk_end) - chunk,
            };
            let ends = row < self.last_row && row_end <= chunk_end;
            let ending = groups.count_in(warp::ballot(FULL_MASK, ends));
            // SAFETY: the piece is of the chunk, whose products are in shared memory; a row that ends here is a row of
            // A, and no other warp writes it.
            unsafe {
                let mut sum = self.sum(piece);
                if is_first {
                    sum = array::from_fn(|k| R::join(self.carry[k], sum[k]));
                }
                if ends && !(is_first && self.began_before) {
                    self.store_row(row, row_end, sum);
                }
                if self.began_before && is_first && ends {
                    self.store_part(split_rows::head(self.task), sum);
                }
                self.began_before &= ending == 0;
                self.row += ending;
                let goes_on = groups.first_lane(ending.min(groups.count() - 1)) + groups.vector();
                if ending == groups.count() {
                    self.position = warp::shfl_idx(FULL_MASK, row_end, WARP_SIZE - 1, WARP_SIZE);
                    self.carry = [R::start(); WIDTH];
                } else {
                    self.position = chunk_end;
                    self.carry =
                        array::from_fn(|k| warp::shfl_idx(FULL_MASK, sum[k], goes_on, WARP_SIZE));
                    return;
                }
            }
        }
    }

    /// The sum of a group's piece: by the group alone if it is short, else by all groups of the warp.
    #[inline(always)]
    unsafe fn sum(&self, piece: Piece) -> [T::Sum; WIDTH] {
        let groups = self.groups;
        let is_long = piece.end - piece.start > LONG_ROW;
        let mut sum = [R::start(); WIDTH];
        // SAFETY: the products of a piece are in shared memory.
        unsafe {
            if !is_long {
                sum = self.sum_every(1, piece);
            }
            let mut long = warp::ballot(FULL_MASK, is_long && groups.vector() == 0);
            while long != 0 {
                let leader = long.trailing_zeros();
                let of_leader = Piece {
                    start: warp::shfl_idx(FULL_MASK, piece.start, leader, WARP_SIZE),
                    end: warp::shfl_idx(FULL_MASK, piece.end, leader, WARP_SIZE),
                };
                let of_group = Piece {
                    start: of_leader.start + groups.group(),
                    ..of_leader
                };
                let part = self.sum_every(groups.count(), of_group);
                let joined = join_groups::<T::Sum, R, WIDTH>(groups, part);
                if groups.first_lane(groups.group()) == leader {
                    sum = joined;
                }
                long &= long - 1;
            }
        }
        sum
    }

    /// The sum of every `stride`-th product of a piece.
    #[inline(always)]
    unsafe fn sum_every(&self, stride: u32, piece: Piece) -> [T::Sum; WIDTH] {
        let mut sum = [R::start(); WIDTH];
        let mut k = piece.start;
        while k < piece.end {
            let products: [[T::Sum; WIDTH]; UNROLL] = array::from_fn(|i| {
                let k = k + i as u32 * stride;
                if k < piece.end {
                    // SAFETY: product `k` is of the piece.
                    unsafe { self.products.load_array(self.groups.place::<T::Sum, WIDTH>(k)) }
                } else {
                    [R::start(); WIDTH]
                }
            });
            for i in 0..UNROLL {
                sum = array::from_fn(|f| R::join(sum[f], products[i][f]));
            }
            k += UNROLL as u32 * stride;
        }
        sum
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
                feature: self.feature,
                features: self.features,
            };
            RowEpilogue::<T>::write::<1, WIDTH, 1>(self.scaling, output, [sum]);
        }
    }

    /// Stores the part of the row that goes on after the task, if there is one.
    ///
    /// # Safety
    ///
    /// The kernel's contract; the task has been streamed.
    #[inline(always)]
    pub unsafe fn store_tail(&self) {
        // SAFETY: `row` is compared with the rows of A before it is used; the part is this task's.
        unsafe {
            let goes_on =
                self.row < self.a.rows && self.task_end > self.a.row_ptr.load(self.row as usize);
            if goes_on && self.groups.group() == 0 {
                let part = if self.began_before {
                    split_rows::head(self.task)
                } else {
                    split_rows::tail(self.task)
                };
                self.store_part(part, self.carry);
            }
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

/// The groups' parts joined, in all groups.
#[inline(always)]
pub(super) fn join_groups<S: Real, R: Reducer, const WIDTH: usize>(
    groups: LaneGroups,
    part: [S; WIDTH],
) -> [S; WIDTH] {
    let mut joined = part;
    let mut distance = groups.lanes();
    while distance < WARP_SIZE {
        joined = array::from_fn(|k| {
            let other = warp::shfl_xor(FULL_MASK, joined[k], distance, WARP_SIZE);
            R::join(joined[k], other)
        });
        distance *= 2;
    }
    joined
}
