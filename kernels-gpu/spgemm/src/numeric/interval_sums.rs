//! The sums of up to four rows of C whose rows of B are runs of neighbouring columns.
//!
//! Each lane stages one of 32 rows of B in shared memory:
//!
//! - bits for the columns of C that it has;
//! - where it would start in B if it had all of them;
//! - the nonzeros of A that it is multiplied by, one per row of C.
//!
//! Then all lanes go through the staged rows, four at a time. For each of its columns a lane tests
//! a bit and loads the factor once; for each row of C it does a multiply-add.

use crate::products::operands::OperandPatterns;
use crate::products::window::interval_bits;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Maximum number of rows of C.
pub(crate) const MAX_ROWS: usize = 4;

/// Rows of B that are loaded together.
const UNROLL: usize = 4;

/// Staged rows of B: one per lane. Words of the same kind stand side by side.
const LANES: usize = WARP_SIZE as usize;

/// Words of a staged row of B: bits of the columns of C, its start, and bits of the rows of C.
const fn words(span: u32) -> u32 {
    span / WARP_SIZE + 2
}

/// Bytes of shared memory that a warp needs.
pub(crate) const fn room_bytes(span: u32, element_bytes: u32) -> u32 {
    (4 * words(span) + MAX_ROWS as u32 * element_bytes) * WARP_SIZE
}

/// A row of B, and the rows of C that it is added to.
pub(crate) struct RowOfB<T, const ROWS: usize> {
    /// Its number.
    pub row: u32,
    /// A bit for each row of C that it is added to.
    pub rows: u32,
    /// For each of these, the nonzero of A that it is multiplied by.
    pub values: [T; ROWS],
}

/// The sums of the columns from `first` on of `ROWS` rows of C; the lane has every 32nd column.
///
/// `row_of_b(k)` gives the row of B for each number `k` up to `end`, in the order of addition.
/// Numbers from `end` on, up to 31 of them, must give rows that are added to no row of C.
///
/// # Safety
///
/// All lanes of the warp call it with the same arguments, and `k` is below `end`. `operands` is
/// valid (see [`OperandPatterns`]), and `b` has the values of B. The rows of B are runs of columns
/// within the `32 * SUMS` columns from `first` on. `room` has [`room_bytes`], aligned to 16, of
/// this warp alone.
#[inline(always)]
pub(crate) unsafe fn interval_sums<T: Real, const SUMS: usize, const ROWS: usize>(
    operands: &OperandPatterns,
    b: Global<T>,
    first: u32,
    (mut k, end): (u32, u32),
    room: Shared<u32>,
    row_of_b: impl Fn(u32) -> RowOfB<T, ROWS>,
) -> [[T; SUMS]; ROWS] {
    let lane = warp::lane_id();
    // A row of B that had all columns could start before B. Moved by the span, its start is never
    // negative.
    let span = (SUMS * LANES * size_of::<T>()) as u64;
    let b = b.offset_bytes(span.wrapping_neg());
    let mut sums = [[T::ZERO; SUMS]; ROWS];
    // SAFETY: rows and room are those of the contract. The warp synchronises between writes and
    // reads of the room; all lanes agree on `k` and `end`.
    unsafe {
        loop {
            let row_of_b = row_of_b(k.wrapping_add(lane));
            let added_to_all = stage::<T, SUMS, ROWS>(operands, first, room, row_of_b);
            warp::sync_warp(FULL_MASK);
            let count = (end - k).min(WARP_SIZE);
            let mut position = 0;
            while position < count {
                let adds_to_all = added_to_all >> position & 15 == 15;
                sums = add::<T, SUMS, ROWS>(sums, b, room, position as usize, adds_to_all);
                position += UNROLL as u32;
            }
            warp::sync_warp(FULL_MASK);
            if end - k <= WARP_SIZE {
                return sums;
            }
            k += WARP_SIZE;
        }
    }
}

/// Stages the lane's row of B. Gives a bit for each staged row that is added to all rows of C, or
/// has no columns, which comes to the same.
///
/// # Safety
///
/// As for [`interval_sums`].
#[inline(always)]
unsafe fn stage<T: Real, const SUMS: usize, const ROWS: usize>(
    operands: &OperandPatterns,
    first: u32,
    room: Shared<u32>,
    RowOfB { row, rows, values }: RowOfB<T, ROWS>,
) -> u32 {
    let lane = warp::lane_id();
    let (mut columns, mut start) = ([0; SUMS], 0);
    // SAFETY: `row` is a row of B where it is added to a row of C; the lane has its own words of
    // the room.
    unsafe {
        if rows != 0 {
            let [start_b, end_b, low, high] = operands.extents.load4(4 * row as usize);
            if start_b < end_b {
                let interval = (low - first, high - first);
                columns = array::from_fn(|s| interval_bits(interval, s as u32 * WARP_SIZE));
                start = SUMS as u32 * WARP_SIZE + start_b - (low - first);
            }
        }
        let room = room.offset(lane as usize);
        #[allow(
            clippy::needless_range_loop,
            reason = "an iterator over the array is not unrolled, and puts it into local memory"
        )]
        for s in 0..SUMS {
            room.store(s * LANES, columns[s]);
        }
        room.store(SUMS * LANES, start);
        room.store((SUMS + 1) * LANES, rows);
    }
    let factors = factors::<T, SUMS>(room).offset(lane as usize);
    #[allow(
        clippy::needless_range_loop,
        reason = "an iterator over the array is not unrolled, and puts it into local memory"
    )]
    for r in 0..ROWS {
        // SAFETY: the lane has its own factors in the room.
        unsafe { factors.store(r * LANES, values[r]) };
    }
    let adds_to_all = rows == (1 << ROWS) - 1 || columns == [0; SUMS];
    warp::ballot(FULL_MASK, adds_to_all)
}

/// The sums after the addition of the four staged rows of B from `position` on.
///
/// # Safety
///
/// As for [`interval_sums`]; the rows are staged, and the warp has synchronised.
#[inline(always)]
unsafe fn add<T: Real, const SUMS: usize, const ROWS: usize>(
    mut sums: [[T; SUMS]; ROWS],
    b: Global<T>,
    room: Shared<u32>,
    position: usize,
    adds_to_all: bool,
) -> [[T; SUMS]; ROWS] {
    let lane = warp::lane_id();
    let factors = factors::<T, SUMS>(room);
    // SAFETY: `position` is a multiple of four below 32. A value of B is loaded only if its bit is
    // set, so the row of B has it.
    unsafe {
        let columns: [[u32; UNROLL]; SUMS] = array::from_fn(|s| room.load4(s * LANES + position));
        let starts = room.load4(SUMS * LANES + position);
        // Skipped, not multiplied by 0: the factor may be infinite.
        let has = |s: usize, u: usize| columns[s][u] & 1 << lane != 0;
        let loaded: [[T; SUMS]; UNROLL] = array::from_fn(|u| {
            let b = b.offset((starts[u] + lane) as usize);
            array::from_fn(|s| {
                if has(s, u) {
                    b.load(s * LANES)
                } else {
                    T::ZERO
                }
            })
        });
        if adds_to_all {
            unroll!(r in 0..4 {
                if r < ROWS {
                    let values = factors.load4(r * LANES + position);
                    unroll!(u in 0..4 {
                        sums[r] = array::from_fn(|s| {
                            if has(s, u) {
                                values[u].mul_add(loaded[u][s], sums[r][s])
                            } else {
                                sums[r][s]
                            }
                        });
                    });
                }
            });
            return sums;
        }
        // Two at a time: four rows of factors and of bits would take more registers, and fewer
        // warps would fit.
        unroll!(half in 0..2 {
            let position = position + 2 * half;
            let rows = room.load2((SUMS + 1) * LANES + position);
            unroll!(r in 0..4 {
                if r < ROWS {
                    let values = factors.load2(r * LANES + position);
                    unroll!(u in 0..2 {
                        sums[r] = array::from_fn(|s| {
                            if has(s, 2 * half + u) && rows[u] & 1 << r != 0 {
                                values[u].mul_add(loaded[2 * half + u][s], sums[r][s])
                            } else {
                                sums[r][s]
                            }
                        });
                    });
                }
            });
        });
    }
    sums
}

/// The nonzeros of A in the room, those of one row of C after the other's.
#[inline(always)]
fn factors<T: Real, const SUMS: usize>(room: Shared<u32>) -> Shared<T> {
    room.offset((SUMS + 2) * LANES).cast()
}

const _: () = assert!(UNROLL == 4 && MAX_ROWS == 4);
