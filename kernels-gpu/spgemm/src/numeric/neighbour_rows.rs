//! Numeric, banded and blocked matrices: [`interval_rows`](mod@crate::numeric::interval_rows), four rows together.
//!
//! Neighbouring rows of such matrices have most rows of B in common. Where rows of A are runs too, of which four overlap, and their rows
//! of C span few columns together, a warp takes them together: what it loads of a row of B is added to four rows of C. It does not
//! matter which rows of the bin these are; neighbours mostly are neighbours in its list. Four others it takes one after the other. The
//! sums are added up in the order of the nonzeros of A.
//!
//! Where all columns of the span have entries, the entries' columns are not read either.
//!
//! On an H200 the phase takes 0.41 ms for a million rows of 27 neighbouring columns, 3.6 TFLOP/s, and 0.48 ms for blocks of 64 x 64,
//! 11 TFLOP/s; with a row a warp 0.72 and 1.21 ms. How many warps a multiprocessor has at a time counts: with 69 registers a thread and
//! not 47 it took 0.50 and 0.59 ms; in that form two rows a warp took 0.89 and 0.81 ms, and eight warps a block 0.55 and 0.70 ms.

use crate::numeric::interval_sums::{MOST_ROWS, RowOfB, interval_sums, room_bytes};
use crate::products::bins::WORK;
use crate::products::operands::{Factors, Items, Operands, Structure};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Warps in a block.
const WARPS: u32 = 4;

/// Rows that a warp takes together.
const TOGETHER: u32 = MOST_ROWS as u32;

/// Words of what is known of a row.
const ROW_WORDS: u32 = 8;

/// Columns that rows may span, at most.
pub const MOST_SPAN: u32 = 64;

/// Columns of a lane.
const SUMS: usize = (MOST_SPAN / WARP_SIZE) as usize;

/// Bytes of shared memory of a warp: for rows of B, and then for the sums of a row.
const fn warp_bytes(element_bytes: u32) -> u32 {
    let sums = MOST_SPAN * element_bytes;
    let rows_of_b = room_bytes(MOST_SPAN, element_bytes);
    if sums > rows_of_b { sums } else { rows_of_b }
}

/// Whether that many rows leave so many warps.
pub fn are_enough(rows: u32, warps: u32) -> bool {
    rows / TOGETHER >= warps
}

/// The launch of [`neighbour_rows`] for that many rows.
pub fn launch<T: Real>(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(TOGETHER * WARPS), WARPS * WARP_SIZE)
        .shared_bytes(WARPS * warp_bytes(size_of::<T>() as u32))
}

/// The values of rows that span up to [`MOST_SPAN`] columns, and whose rows of A and of B are all runs; four rows a warp, a lane
/// every 32nd column.
///
/// # Safety
///
/// The operands are what they say; the items are such rows; `work` is `row_work`'s, `c` the product's structure, `values` its
/// values. The launch is [`launch`]'s.
#[kernel(name = "spgemm_neighbour_rows", T = [f32, f64])]
pub unsafe fn neighbour_rows<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    work: Global<u32>,
    c: Structure,
    values: GlobalMut<T>,
) {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    // An item has two nonzeros of A or more: there are not nearly 2^32 of them.
    let first = (thread::block_idx_x() * WARPS + warp) * TOGETHER;
    if first >= items.count {
        return;
    }
    let rows = shared_array!(u32; (WARPS * ROW_WORDS * TOGETHER) as usize);
    let shared = shared::dynamic_shared_mem::<u8>();
    let bytes = warp_bytes(size_of::<T>() as u32);
    let product = Product {
        operands: &operands,
        factors,
        work,
        c: &c,
        values,
        rows: rows.offset((warp * ROW_WORDS * TOGETHER) as usize),
        room: shared.offset((warp * bytes) as usize).cast(),
    };
    let count = TOGETHER.min(items.count - first);
    // SAFETY: items of the launch; the warp's own shared memory.
    unsafe {
        product.add_up::<SUMS>(&items, first, count);
    }
}

/// A row of C.
#[derive(Clone, Copy)]
struct Row {
    /// Its number.
    row: u32,
    /// The column of its first nonzero of A.
    k_first: u32,
    /// How many nonzeros of A it has.
    nonzeros: u32,
    /// The first of these.
    start: u32,
    /// Its first column.
    first: u32,
    /// The columns from its first to its last.
    span: u32,
    /// Its first entry.
    start_c: u32,
    /// How many entries it has.
    entries: u32,
}

/// The product, and the warp's shared memory.
struct Product<'a, T> {
    operands: &'a Operands,
    factors: Factors<T>,
    work: Global<u32>,
    c: &'a Structure,
    values: GlobalMut<T>,
    /// What is known of the rows of C that it takes together.
    rows: Shared<u32>,
    /// For the rows of B, and for sums.
    room: Shared<u32>,
}

impl<T: Real> Product<'_, T> {
    /// The values of `count` rows, together if they are fit for that, else one after the other.
    #[inline(always)]
    unsafe fn add_up<const SUMS: usize>(&self, items: &Items, first: u32, count: u32) {
        // SAFETY: items of the launch.
        unsafe {
            if count == TOGETHER && self.add_up_together::<SUMS>(items, first) {
                return;
            }
            for item in first..first + count {
                let row = self.row(items, item);
                let end = row.start + row.nonzeros;
                let sums = self.sums_of::<SUMS, 1>(row.first, (row.start, end), |k| {
                    if k >= end {
                        return RowOfB {
                            row: 0,
                            rows: 0,
                            values: [T::ZERO],
                        };
                    }
                    RowOfB {
                        row: self.operands.a.col_idx.load(k as usize),
                        rows: 1,
                        values: [self.factors.a.load(k as usize)],
                    }
                });
                self.write(row, row.first, sums[0]);
            }
        }
    }

    /// The values of [`TOGETHER`] rows, if their rows of A overlap and they span few columns together.
    #[inline(always)]
    unsafe fn add_up_together<const SUMS: usize>(&self, items: &Items, first: u32) -> bool {
        let lane = warp::lane_id();
        // SAFETY: items of the launch; a row has nonzeros of A; all lanes are here.
        unsafe {
            // A lane has a row.
            let row = self.row(items, first + lane % TOGETHER);
            let k_last = row.k_first + (row.nonzeros - 1);
            let c_first = warp::reduce_min(FULL_MASK, row.first);
            let c_last = warp::reduce_max(FULL_MASK, row.first + (row.span - 1));
            let from = warp::reduce_min(FULL_MASK, row.k_first);
            let end = warp::reduce_max(FULL_MASK, k_last) + 1;
            // Of longer rows there are fewer.
            let nonzeros = warp::reduce_add(FULL_MASK, row.nonzeros.min(1 << 20));
            if c_last - c_first >= SUMS as u32 * WARP_SIZE
                || end - from > nonzeros / (WARP_SIZE / TOGETHER) / 2
            {
                return false;
            }
            if lane < TOGETHER {
                row.store(self.rows, lane);
            }
            warp::sync_warp(FULL_MASK);
            let sums = self.sums_of::<SUMS, MOST_ROWS>(c_first, (from, end), |k| {
                let mut row_of_b = RowOfB {
                    row: k,
                    rows: 0,
                    values: [T::ZERO; MOST_ROWS],
                };
                unroll!(r in 0..4 {
                    let row = Row::load(self.rows, r as u32);
                    let place = k.wrapping_sub(row.k_first);
                    if place < row.nonzeros {
                        row_of_b.rows |= 1 << r;
                        row_of_b.values[r] = self.factors.a.load((row.start + place) as usize);
                    }
                });
                row_of_b
            });
            unroll!(r in 0..4 {
                self.write(Row::load(self.rows, r as u32), c_first, sums[r]);
            });
        }
        true
    }

    /// What there is to know of an item's row.
    #[inline(always)]
    unsafe fn row(&self, items: &Items, item: u32) -> Row {
        // SAFETY: an item of the launch.
        unsafe {
            let [row, _] = items.load(item);
            let (start, end) = self.operands.a.row(row);
            let (start_c, end_c) = self.c.row(row);
            let [_, first, span, _] = self.work.load4(WORK * row as usize);
            Row {
                row,
                k_first: self.operands.a.col_idx.load(start as usize),
                nonzeros: end - start,
                start,
                first,
                span,
                start_c,
                entries: end_c - start_c,
            }
        }
    }

    /// The sums of the columns from `first` on, as [`interval_sums`] gives them.
    #[inline(always)]
    unsafe fn sums_of<const SUMS: usize, const ROWS: usize>(
        &self,
        first: u32,
        numbers: (u32, u32),
        row_of_b: impl Fn(u32) -> RowOfB<T, ROWS>,
    ) -> [[T; SUMS]; ROWS] {
        let (operands, b) = (self.operands, self.factors.b);
        // SAFETY: the caller's contract; the warp's own room.
        unsafe { interval_sums(operands, b, first, numbers, self.room, row_of_b) }
    }

    /// Writes a row's values, of the sums of the columns from `first` on.
    #[inline(always)]
    unsafe fn write<const SUMS: usize>(&self, row: Row, first: u32, sums: [T; SUMS]) {
        let (lane, c, values) = (warp::lane_id(), self.c, self.values);
        let before = row.first - first;
        // SAFETY: entries of the row; the warp's own room, synchronised between writes and reads.
        unsafe {
            if row.entries == row.span {
                // All columns have entries: an entry's place is that of its column.
                #[allow(
                    clippy::needless_range_loop,
                    reason = "an iterator over the array is not unrolled, and puts it into local memory"
                )]
                for s in 0..SUMS {
                    let i = (s as u32 * WARP_SIZE + lane).wrapping_sub(before);
                    if i < row.entries {
                        c.put(row.start_c + i, row.first + i);
                        values.store((row.start_c + i) as usize, sums[s]);
                    }
                }
                return;
            }
            let room = self.room.cast::<T>();
            #[allow(
                clippy::needless_range_loop,
                reason = "an iterator over the array is not unrolled, and puts it into local memory"
            )]
            for s in 0..SUMS {
                room.store((s as u32 * WARP_SIZE + lane) as usize, sums[s]);
            }
            warp::sync_warp(FULL_MASK);
            let columns = c.columns(row.row);
            let mut i = lane;
            while i < row.entries {
                let column = columns.load(i as usize);
                c.put(row.start_c + i, column);
                let sum = room.load((column - first) as usize);
                values.store((row.start_c + i) as usize, sum);
                i += WARP_SIZE;
            }
            warp::sync_warp(FULL_MASK);
        }
    }
}

impl Row {
    /// Stores it as number `number`.
    #[inline(always)]
    unsafe fn store(self, to: Shared<u32>, number: u32) {
        let to = to.offset((number * ROW_WORDS) as usize);
        // SAFETY: the caller has the room, aligned as vectors want.
        unsafe {
            to.store4(0, [self.row, self.k_first, self.nonzeros, self.start]);
            to.store4(4, [self.first, self.span, self.start_c, self.entries]);
        }
    }

    /// Loads number `number`.
    #[inline(always)]
    unsafe fn load(from: Shared<u32>, number: u32) -> Self {
        let from = from.offset((number * ROW_WORDS) as usize);
        // SAFETY: it has been stored.
        let ([row, k_first, nonzeros, start], [first, span, start_c, entries]) =
            unsafe { (from.load4(0), from.load4(4)) };
        Self {
            row,
            k_first,
            nonzeros,
            start,
            first,
            span,
            start_c,
            entries,
        }
    }
}

const _: () = assert!(TOGETHER == 4);
