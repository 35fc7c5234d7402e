//! The sums of rows of C whose rows of B are runs of neighbouring columns, one row or several together.
//!
//! Of 32 rows of B at a time each lane finds out which columns of C one of them has, as bits, where it would start if it had all, and
//! the nonzeros of A that it is multiplied by. Of four of them at a time all lanes then load that from shared memory; of each column there
//! is a test, a load, and for each row of C an addition.

use crate::products::operands::Operands;
use crate::products::window::bits;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Rows of C, at most.
pub(crate) const MOST_ROWS: usize = 4;

/// Rows of B that are loaded together.
const UNROLL: usize = 4;

/// The warp's size, for places in shared memory: a word or a factor for each of its rows of B.
const PLACES: usize = WARP_SIZE as usize;

/// Words of a row of B: bits of the columns of C, its start, and the rows of C that it is added to.
const fn words(span: u32) -> u32 {
    span / WARP_SIZE + 2
}

/// Bytes of shared memory that a warp wants.
pub(crate) const fn room_bytes(span: u32, element_bytes: u32) -> u32 {
    (4 * words(span) + MOST_ROWS as u32 * element_bytes) * WARP_SIZE
}

/// A row of B, and what it is added to.
pub(crate) struct RowOfB<T, const ROWS: usize> {
    /// Its number.
    pub row: u32,
    /// A bit for each row of C that it is added to.
    pub rows: u32,
    /// For each of these the nonzero of A that it is multiplied by.
    pub values: [T; ROWS],
}

/// The sums of the columns from `first` on of `ROWS` rows of C: those of the lane are 32 apart. `row_of_b(k)` is the row of B for each
/// of the numbers `k` up to `end`, and for as many more as there are lanes, which are added to no row; it is added after those before it.
///
/// # Safety
///
/// All lanes of the warp are here, with the same arguments; `k` is below `end`. The rows of B are runs of columns from `first` on, of which there
/// are sums for all; `b` are the values. `room` has [`room_bytes`], aligned to 16.
#[inline(always)]
pub(crate) unsafe fn interval_sums<T: Real, const SUMS: usize, const ROWS: usize>(
    operands: &Operands,
    b: Global<T>,
    first: u32,
    (mut k, end): (u32, u32),
    room: Shared<u32>,
    row_of_b: impl Fn(u32) -> RowOfB<T, ROWS>,
) -> [[T; SUMS]; ROWS] {
    let lane = warp::lane_id();
    // What is `span` further on than a row of B would start is in no case before B.
    let span = (SUMS * PLACES * size_of::<T>()) as u64;
    let b = b.offset_bytes(span.wrapping_neg());
    let mut sums = [[T::ZERO; SUMS]; ROWS];
    // SAFETY: rows of B; the warp's own room, synchronised between writes and reads.
    unsafe {
        loop {
            let row_of_b = row_of_b(k.wrapping_add(lane));
            let of_all = stage::<T, SUMS, ROWS>(operands, first, room, row_of_b);
            warp::sync_warp(FULL_MASK);
            let count = (end - k).min(WARP_SIZE);
            let mut place = 0;
            while place < count {
                let is_of_all = of_all >> place & 15 == 15;
                sums = add::<T, SUMS, ROWS>(sums, b, room, place as usize, is_of_all);
                place += UNROLL as u32;
            }
            warp::sync_warp(FULL_MASK);
            if end - k <= WARP_SIZE {
                return sums;
            }
            k += WARP_SIZE;
        }
    }
}

/// Puts the lane's row of B into the room; gives bits of those that are added to all rows of C or, what is the same, have no columns.
#[inline(always)]
unsafe fn stage<T: Real, const SUMS: usize, const ROWS: usize>(
    operands: &Operands,
    first: u32,
    room: Shared<u32>,
    RowOfB { row, rows, values }: RowOfB<T, ROWS>,
) -> u32 {
    let lane = warp::lane_id();
    let (mut columns, mut start) = ([0; SUMS], 0);
    // SAFETY: a row of B; the lane's places in the room.
    unsafe {
        if rows != 0 {
            let [start_b, end_b, low, high] = operands.extents.load4(4 * row as usize);
            if start_b < end_b {
                let interval = (low - first, high - first);
                columns = array::from_fn(|s| bits(interval, s as u32 * WARP_SIZE));
                start = SUMS as u32 * WARP_SIZE + start_b - (low - first);
            }
        }
        let room = room.offset(lane as usize);
        #[allow(
            clippy::needless_range_loop,
            reason = "an iterator over the array is not unrolled, and puts it into local memory"
        )]
        for s in 0..SUMS {
            room.store(s * PLACES, columns[s]);
        }
        room.store(SUMS * PLACES, start);
        room.store((SUMS + 1) * PLACES, rows);
    }
    let factors = factors::<T, SUMS>(room).offset(lane as usize);
    #[allow(
        clippy::needless_range_loop,
        reason = "an iterator over the array is not unrolled, and puts it into local memory"
    )]
    for r in 0..ROWS {
        // SAFETY: the lane's places in the room.
        unsafe { factors.store(r * PLACES, values[r]) };
    }
    let is_of_all = rows == (1 << ROWS) - 1 || columns == [0; SUMS];
    warp::ballot(FULL_MASK, is_of_all)
}

/// The sums, after the four rows of B from `place` on have been added.
#[inline(always)]
unsafe fn add<T: Real, const SUMS: usize, const ROWS: usize>(
    mut sums: [[T; SUMS]; ROWS],
    b: Global<T>,
    room: Shared<u32>,
    place: usize,
    is_of_all: bool,
) -> [[T; SUMS]; ROWS] {
    let lane = warp::lane_id();
    let factors = factors::<T, SUMS>(room);
    // SAFETY: what the lanes have put into the room; columns that the rows of B have.
    unsafe {
        let columns: [[u32; UNROLL]; SUMS] = array::from_fn(|s| room.load4(s * PLACES + place));
        let starts = room.load4(SUMS * PLACES + place);
        // Not 0 times a factor that may be infinite.
        let has = |s: usize, u: usize| columns[s][u] & 1 << lane != 0;
        let loaded: [[T; SUMS]; UNROLL] = array::from_fn(|u| {
            let b = b.offset((starts[u] + lane) as usize);
            array::from_fn(|s| {
                if has(s, u) {
                    b.load(s * PLACES)
                } else {
                    T::ZERO
                }
            })
        });
        if is_of_all {
            unroll!(r in 0..4 {
                if r < ROWS {
                    let values = factors.load4(r * PLACES + place);
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
        // By twos: with four rows of factors and of bits, fewer warps would have registers at a time.
        unroll!(half in 0..2 {
            let place = place + 2 * half;
            let rows = room.load2((SUMS + 1) * PLACES + place);
            unroll!(r in 0..4 {
                if r < ROWS {
                    let values = factors.load2(r * PLACES + place);
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

/// Where the room has the nonzeros of A, one row's of C after the other's.
#[inline(always)]
fn factors<T: Real, const SUMS: usize>(room: Shared<u32>) -> Shared<T> {
    room.offset((SUMS + 2) * PLACES).cast()
}

const _: () = assert!(UNROLL == 4 && MOST_ROWS == 4);
