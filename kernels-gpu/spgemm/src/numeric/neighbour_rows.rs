//! Numeric, for banded and blocked matrices: [`interval_rows`](mod@crate::numeric::interval_rows),
//! four rows of C at a time.
//!
//! Neighbouring rows of such matrices share most rows of B. A warp takes four rows of the list
//! together on two conditions: their rows of A are runs that overlap, and together they span few
//! columns of C. What it loads of a row of B is then added to four rows of C. The list mostly keeps
//! neighbours together, but any four rows will do. Four rows that do not fit are taken one after
//! the other. Sums are added up in the order of the nonzeros of A.
//!
//! ```text
//! A  row 0   x x x x . .      row of B 1 is loaded once, and added
//!    row 1   . x x x x .      to rows 0 and 1 of C
//! ```
//!
//! A row of C that has all columns of its span needs no columns from memory either. A load of B
//! serves up to four products. This pays if enough warps remain (see [`are_enough`]).

use crate::numeric::interval_sums::{MAX_ROWS, RowOfB, interval_sums, room_bytes};
use crate::products::bins::WORK_WORDS;
use crate::products::operands::{Factors, OperandPatterns, OutputPattern, RowList};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Warps in a block.
const WARPS: u32 = 4;

/// Rows that a warp takes together.
const ROWS_PER_WARP: u32 = MAX_ROWS as u32;

/// Words of a staged [`RowOfC`].
const ROW_WORDS: u32 = 8;

/// Maximum span of a row.
pub const MAX_SPAN: u32 = 64;

/// Columns of a lane.
const SUMS: usize = (MAX_SPAN / WARP_SIZE) as usize;

/// Bytes of shared memory of a warp: staged rows of B, and then the sums of a row.
const fn warp_bytes(element_bytes: u32) -> u32 {
    let sums = MAX_SPAN * element_bytes;
    let rows_of_b = room_bytes(MAX_SPAN, element_bytes);
    if sums > rows_of_b { sums } else { rows_of_b }
}

/// Whether at least `warps` warps remain if each takes four of `rows` rows.
pub fn are_enough(rows: u32, warps: u32) -> bool {
    rows / ROWS_PER_WARP >= warps
}

/// The launch of [`neighbour_rows`] for this many rows.
pub fn launch<T: Real>(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(ROWS_PER_WARP * WARPS), WARPS * WARP_SIZE)
        .shared_bytes(WARPS * warp_bytes(size_of::<T>() as u32))
}

/// The values of each listed row. A warp takes four rows, a lane every 32nd column of their span.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The listed rows span at most [`MAX_SPAN`]
/// columns; their rows of A and all their rows of B are runs of neighbouring columns. `work` is
/// that of [`row_work`](crate::analysis::work::row_work). `c` is the pattern of their product (see
/// [`OutputPattern`]), and `values` has room for its entries. The launch is [`launch`]'s.
#[kernel(name = "spgemm_neighbour_rows", T = [f32, f64])]
pub unsafe fn neighbour_rows<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    work: Global<u32>,
    c: OutputPattern,
    values: GlobalMut<T>,
) {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    // An item has at least two nonzeros of A, so there are far fewer than 2^32 items.
    let first = (thread::block_idx_x() * WARPS + warp) * ROWS_PER_WARP;
    if first >= items.count {
        return;
    }
    let rows = shared_array!(u32; (WARPS * ROW_WORDS * ROWS_PER_WARP) as usize);
    let shared = shared::dynamic_shared_mem::<u8>();
    let bytes = warp_bytes(size_of::<T>() as u32);
    let rows = NeighbourRows {
        operands: &operands,
        factors,
        work,
        c: &c,
        values,
        rows: rows.offset((warp * ROW_WORDS * ROWS_PER_WARP) as usize),
        room: shared.offset((warp * bytes) as usize).cast(),
    };
    let count = ROWS_PER_WARP.min(items.count - first);
    // SAFETY: `first` is below `items.count`, checked above; each warp has its own part of shared
    // memory.
    unsafe {
        rows.accumulate::<SUMS>(&items, first, count);
    }
}

/// A row of C.
#[derive(Clone, Copy)]
struct RowOfC {
    /// Its number.
    row: u32,
    /// The column of its first nonzero of A.
    first_a_column: u32,
    /// The number of its nonzeros of A.
    nonzeros: u32,
    /// The position of the first of them.
    first_nonzero: u32,
    /// Its first column.
    first_column: u32,
    /// The number of columns from its first to its last.
    span: u32,
    /// The position of its first entry.
    first_entry: u32,
    /// The number of its entries.
    entries: u32,
}

/// The arguments of the launch, and the warp's shared memory.
struct NeighbourRows<'a, T> {
    operands: &'a OperandPatterns,
    factors: Factors<T>,
    work: Global<u32>,
    c: &'a OutputPattern,
    values: GlobalMut<T>,
    /// The rows of C that the warp takes together.
    rows: Shared<u32>,
    /// For the staged rows of B, and for sums.
    room: Shared<u32>,
}

impl<T: Real> NeighbourRows<'_, T> {
    /// Computes the values of `count` rows: together if they fit, else one after the other.
    ///
    /// # Safety
    ///
    /// As for [`neighbour_rows`]; the items from `first` on are `count` items of the list. All
    /// lanes of the warp call it.
    #[inline(always)]
    unsafe fn accumulate<const SUMS: usize>(&self, items: &RowList, first: u32, count: u32) {
        // SAFETY: `item` is an item of the list, by the contract; factors are loaded below `end`
        // only.
        unsafe {
            if count == ROWS_PER_WARP && self.accumulate_together::<SUMS>(items, first) {
                return;
            }
            for item in first..first + count {
                let row = self.row(items, item);
                let end = row.first_nonzero + row.nonzeros;
                let sums =
                    self.sums_of::<SUMS, 1>(row.first_column, (row.first_nonzero, end), |k| {
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
                self.write(row, row.first_column, sums[0]);
            }
        }
    }

    /// Computes the values of [`ROWS_PER_WARP`] rows if their rows of A overlap and they span few
    /// columns together; else gives `false`.
    ///
    /// # Safety
    ///
    /// As for [`accumulate`](Self::accumulate).
    #[inline(always)]
    unsafe fn accumulate_together<const SUMS: usize>(&self, items: &RowList, first: u32) -> bool {
        let lane = warp::lane_id();
        // SAFETY: the items are those of the contract; each row has nonzeros of A, and `position` is
        // below their number where one is loaded. The rows agree on the decision, as it comes from
        // reductions over the warp.
        unsafe {
            // Each lane loads one of the four rows.
            let row = self.row(items, first + lane % ROWS_PER_WARP);
            let k_last = row.first_a_column + (row.nonzeros - 1);
            let c_first = warp::reduce_min(FULL_MASK, row.first_column);
            let c_last = warp::reduce_max(FULL_MASK, row.first_column + (row.span - 1));
            let from = warp::reduce_min(FULL_MASK, row.first_a_column);
            let end = warp::reduce_max(FULL_MASK, k_last) + 1;
            // Capped so that the sum cannot overflow.
            let nonzeros = warp::reduce_add(FULL_MASK, row.nonzeros.min(1 << 20));
            if c_last - c_first >= SUMS as u32 * WARP_SIZE
                || end - from > nonzeros / (WARP_SIZE / ROWS_PER_WARP) / 2
            {
                return false;
            }
            if lane < ROWS_PER_WARP {
                row.store(self.rows, lane);
            }
            warp::sync_warp(FULL_MASK);
            let sums = self.sums_of::<SUMS, MAX_ROWS>(c_first, (from, end), |k| {
                let mut row_of_b = RowOfB {
                    row: k,
                    rows: 0,
                    values: [T::ZERO; MAX_ROWS],
                };
                unroll!(r in 0..4 {
                    let row = RowOfC::load(self.rows, r as u32);
                    let position = k.wrapping_sub(row.first_a_column);
                    if position < row.nonzeros {
                        row_of_b.rows |= 1 << r;
                        row_of_b.values[r] = self.factors.a.load((row.first_nonzero + position) as usize);
                    }
                });
                row_of_b
            });
            unroll!(r in 0..4 {
                self.write(RowOfC::load(self.rows, r as u32), c_first, sums[r]);
            });
        }
        true
    }

    /// Loads what is known of an item's row.
    ///
    /// # Safety
    ///
    /// `item` is an item of the list; the rest is as [`neighbour_rows`] asks.
    #[inline(always)]
    unsafe fn row(&self, items: &RowList, item: u32) -> RowOfC {
        // SAFETY: `item` is an item of the list, and its row has a nonzero of A.
        unsafe {
            let [row, _] = items.load(item);
            let (start, end) = self.operands.a.row(row);
            let (first_entry, end_entry) = self.c.row(row);
            let [_, first, span, _] = self.work.load4(WORK_WORDS * row as usize);
            RowOfC {
                row,
                first_a_column: self.operands.a.col_idx.load(start as usize),
                nonzeros: end - start,
                first_nonzero: start,
                first_column: first,
                span,
                first_entry,
                entries: end_entry - first_entry,
            }
        }
    }

    /// The sums of the columns from `first` on, as [`interval_sums`] gives them.
    ///
    /// # Safety
    ///
    /// As for [`interval_sums`].
    #[inline(always)]
    unsafe fn sums_of<const SUMS: usize, const ROWS: usize>(
        &self,
        first: u32,
        numbers: (u32, u32),
        row_of_b: impl Fn(u32) -> RowOfB<T, ROWS>,
    ) -> [[T; SUMS]; ROWS] {
        let (operands, b) = (self.operands, self.factors.b);
        // SAFETY: the contract is the same, and the room is this warp's.
        unsafe { interval_sums(operands, b, first, numbers, self.room, row_of_b) }
    }

    /// Writes the values of a row from the sums of the columns from `first` on.
    ///
    /// # Safety
    ///
    /// The row is one of C, and `sums` has a sum for each column of its span. All lanes of the warp
    /// call it.
    #[inline(always)]
    unsafe fn write<const SUMS: usize>(&self, row: RowOfC, first: u32, sums: [T; SUMS]) {
        let (lane, c, values) = (warp::lane_id(), self.c, self.values);
        let before = row.first_column - first;
        // SAFETY: `i` is below the row's entries. The warp's room is its own, synchronised between
        // writes and reads.
        unsafe {
            if row.entries == row.span {
                // Every column of the span has an entry, so an entry's number is its column's
                // distance.
                #[allow(
                    clippy::needless_range_loop,
                    reason = "an iterator over the array is not unrolled, and puts it into local memory"
                )]
                for s in 0..SUMS {
                    let i = (s as u32 * WARP_SIZE + lane).wrapping_sub(before);
                    if i < row.entries {
                        c.write_column(row.first_entry + i, row.first_column + i);
                        values.store((row.first_entry + i) as usize, sums[s]);
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
                c.write_column(row.first_entry + i, column);
                let sum = room.load((column - first) as usize);
                values.store((row.first_entry + i) as usize, sum);
                i += WARP_SIZE;
            }
            warp::sync_warp(FULL_MASK);
        }
    }
}

impl RowOfC {
    /// Stages it as row `number`.
    ///
    /// # Safety
    ///
    /// `to` has room for [`ROW_WORDS`] words of it, aligned to 16 bytes.
    #[inline(always)]
    unsafe fn store(self, to: Shared<u32>, number: u32) {
        let to = to.offset((number * ROW_WORDS) as usize);
        // SAFETY: the room and its alignment are part of the contract.
        unsafe {
            to.store4(
                0,
                [
                    self.row,
                    self.first_a_column,
                    self.nonzeros,
                    self.first_nonzero,
                ],
            );
            to.store4(
                4,
                [self.first_column, self.span, self.first_entry, self.entries],
            );
        }
    }

    /// Loads staged row `number`.
    ///
    /// # Safety
    ///
    /// It has been stored, and the warp has synchronised.
    #[inline(always)]
    unsafe fn load(from: Shared<u32>, number: u32) -> Self {
        let from = from.offset((number * ROW_WORDS) as usize);
        // SAFETY: it has been stored, by the contract.
        let (
            [row, first_a_column, nonzeros, first_nonzero],
            [first_column, span, first_entry, entries],
        ) = unsafe { (from.load4(0), from.load4(4)) };
        Self {
            row,
            first_a_column,
            nonzeros,
            first_nonzero,
            first_column,
            span,
            first_entry,
            entries,
        }
    }
}

const _: () = assert!(ROWS_PER_WARP == 4);
