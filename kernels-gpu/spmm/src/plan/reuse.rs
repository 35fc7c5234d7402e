//! How many columns consecutive rows share, from a sample of windows of rows. It says what an order
//! of the rows gains.
//!
//! A block counts the distinct columns of a window of consecutive rows, in a hash table in shared
//! memory. Two samples bound its work:
//!
//! - Of a window with more nonzeros than are wanted, which has hubs, it reads one chunk of several.
//!   Where a row's first chunk lies is random, so that each nonzero is as likely as any other.
//! - Of the columns that it reads, only those with a small hash are counted if the table cannot hold
//!   them all. These are the same columns in each row, so the quotient of distinct columns and
//!   nonzeros has the same expected value.

use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 1024;

/// Columns that a lane has in flight: a window of hubs has millions of nonzeros.
const BATCH: u32 = 4;

/// Maximum number of rows of a window.
pub const MAX_WINDOW_ROWS: u32 = BLOCK;

/// Slots of the table.
const SLOTS: u32 = 8192;

/// Nonzeros of a window in counted columns, on average, if so many are read.
const SAMPLE: u32 = 2048;

/// One of how many columns counts, in a window of which so many nonzeros are read.
pub fn sampled_one_in(nonzeros: u32) -> u32 {
    nonzeros.div_ceil(SAMPLE).max(1)
}

/// Consecutive nonzeros of a row that are read together, or not at all.
const CHUNK: u32 = WARP_SIZE;

/// The first chunk of a row that is read, if one of `one_in` is.
#[inline(always)]
fn first_chunk(row: u32, one_in: u32) -> u32 {
    mix(row) % one_in.max(1)
}

/// The nonzeros that are read of a row with so many, if one chunk of `one_in` is, from chunk `first` on.
#[inline(always)]
fn nonzeros_read(nonzeros: u32, first: u32, one_in: u32) -> u32 {
    let chunks = nonzeros.div_ceil(CHUNK);
    if first >= chunks {
        return 0;
    }
    let before_last = (chunks - 1 - first) / one_in.max(1);
    let last = first + before_last * one_in;
    before_last * CHUNK + CHUNK.min(nonzeros - last * CHUNK)
}

/// An empty slot: no column.
const EMPTY: u32 = u32::MAX;

/// The launch of [`count_distinct`] for so many windows.
pub fn launch(windows: u32) -> LaunchConfig {
    LaunchConfig::new(windows, BLOCK)
}

/// Writes three numbers for each of some windows of `window_rows` rows: the nonzeros that were read,
/// about `most` at most; those of them in [sampled](sampled_one_in) columns; and the number of these
/// columns. A block takes a window; the windows are evenly spread. Each warp takes one row after the
/// other.
///
/// `order` is a permutation of the rows, or null for their own order.
///
/// # Safety
///
/// `row_ptr` and `col_idx` are those of a matrix of `rows` rows, not 0, columns below `u32::MAX`;
/// `order` has a row of the matrix for each of them; `window_rows` is from 1 to
/// [`MAX_WINDOW_ROWS`]; `counts` has three numbers for each block.
#[kernel(name = "spmm_count_distinct")]
pub unsafe fn count_distinct(
    rows: u32,
    window_rows: u32,
    most: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    order: Global<u32>,
    counts: GlobalMut<u32>,
) {
    let slots = shared_array!(u32; 8192);
    // The nonzeros that are read; those of them that count, and their distinct columns.
    let sums = shared_array!(u32; 3);
    // The window's nonzeros, and the next of its rows that no warp has taken.
    let totals = shared_array!(u32; 2);
    let thread = thread::thread_idx_x();
    let block = thread::block_idx_x();
    let windows = rows.div_ceil(window_rows.max(1));
    let blocks = u64::from(thread::grid_dim_x().max(1));
    let window = u64::from(block) * u64::from(windows) / blocks;
    let first = window as u32 * window_rows;
    // SAFETY: `first + thread` and `first + place` are below `rows`; `k` is a nonzero of its row; shared memory is
    // written before the barrier after which it is read.
    unsafe {
        let row_at = |place: u32| {
            let row = if order.address() == 0 {
                place
            } else {
                order.load(place as usize)
            };
            let ends = [row_ptr.load(row as usize), row_ptr.load(row as usize + 1)];
            (row, ends)
        };
        let mut slot = thread;
        while slot < SLOTS {
            slots.store(slot as usize, EMPTY);
            slot += BLOCK;
        }
        if thread < 3 {
            sums.store(thread as usize, 0);
        }
        if thread < 2 {
            totals.store(thread as usize, 0);
        }
        thread::sync_threads();
        let in_window = window_rows.min(rows - first);
        let (row, [start, end]) = if thread < in_window {
            row_at(first + thread)
        } else {
            (0, [0, 0])
        };
        // The rows of a window differ, so their nonzeros are at most the matrix's, a u32.
        totals.atomic_add(0, end - start);
        thread::sync_threads();
        let chunks_one_in = totals.load(0).div_ceil(most.max(1)).max(1);
        let chunk = first_chunk(row, chunks_one_in);
        sums.atomic_add(0, nonzeros_read(end - start, chunk, chunks_one_in));
        thread::sync_threads();
        let one_in = sampled_one_in(sums.load(0));
        let (mut counted, mut distinct) = (0, 0);
        let step = u64::from(chunks_one_in) * u64::from(CHUNK);
        loop {
            let mut place = 0;
            if warp::lane_id() == 0 {
                place = totals.atomic_add(1, 1);
            }
            let place = warp::shfl_idx(FULL_MASK, place, 0, WARP_SIZE);
            if place >= in_window {
                break;
            }
            let (row, [start, end]) = row_at(first + place);
            let chunk = first_chunk(row, chunks_one_in);
            let mut k =
                u64::from(start) + u64::from(chunk) * u64::from(CHUNK) + u64::from(warp::lane_id());
            while k < u64::from(end) {
                let cols: [u32; BATCH as usize] = array::from_fn(|i| {
                    let k = k + i as u64 * step;
                    if k < u64::from(end) {
                        col_idx.load(k as usize)
                    } else {
                        EMPTY
                    }
                });
                unroll!(i in 0..4 {
                    let hash = mix(cols[i]);
                    if cols[i] != EMPTY && hash <= u32::MAX / one_in {
                        counted += 1;
                        if insert(slots, cols[i], hash) {
                            distinct += 1;
                        }
                    }
                });
                k += u64::from(BATCH) * step;
            }
        }
        sums.atomic_add(1, counted);
        sums.atomic_add(2, distinct);
        thread::sync_threads();
        if thread < 3 {
            let sum = sums.load(thread as usize);
            counts.store(3 * block as usize + thread as usize, sum);
        }
    }
}

/// Inserts a column, and says whether it was not in the table; also true if the table is full.
///
/// # Safety
///
/// The table's slots hold columns or are empty.
#[inline(always)]
unsafe fn insert(slots: Shared<u32>, col: u32, hash: u32) -> bool {
    for probe in 0..SLOTS {
        let slot = (hash.wrapping_add(probe) % SLOTS) as usize;
        // SAFETY: `slot < SLOTS` by the remainder, and the table has `SLOTS` slots.
        let there = unsafe { slots.atomic_compare_exchange(slot, EMPTY, col) };
        if there == EMPTY || there == col {
            return there == EMPTY;
        }
    }
    true
}

/// A hash of a number of a column or row (the 32-bit finaliser of MurmurHash3).
#[inline(always)]
fn mix(number: u32) -> u32 {
    let mut hash = number;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}
