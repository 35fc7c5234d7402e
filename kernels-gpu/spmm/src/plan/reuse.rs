//! How many columns consecutive rows share, from a sample of windows of rows. It says what an order
//! of the rows gains.
//!
//! A block counts the nonzeros and the distinct columns of a window of consecutive rows, in a hash
//! table in shared memory. Of a window with more nonzeros than the table can hold, only columns
//! with a small hash count. These are the same columns in each row, so the quotient of distinct
//! columns and nonzeros has the same expected value.

use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 1024;

/// Columns that a lane has in flight: a window of hubs has millions of nonzeros.
const BATCH: u32 = 4;

/// Maximum number of rows of a window.
pub const MAX_WINDOW_ROWS: u32 = BLOCK;

/// Slots of the table.
const SLOTS: u32 = 8192;

/// Nonzeros of a window that are counted, on average, if it has so many.
const SAMPLE: u32 = 2048;

/// One of how many columns counts, in a window of so many nonzeros.
pub fn sampled_one_in(nonzeros: u32) -> u32 {
    nonzeros.div_ceil(SAMPLE).max(1)
}

/// An empty slot: no column.
const EMPTY: u32 = u32::MAX;

/// The launch of [`count_distinct`] for so many windows.
pub fn launch(windows: u32) -> LaunchConfig {
    LaunchConfig::new(windows, BLOCK)
}

/// Writes three numbers for each of some windows of `window_rows` rows: its nonzeros, the nonzeros
/// in [sampled](sampled_one_in) columns, and the number of these columns. A window of more than
/// `longest` nonzeros gets zeros. A block takes a window; the windows are evenly spread.
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
    longest: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    order: Global<u32>,
    counts: GlobalMut<u32>,
) {
    let slots = shared_array!(u32; 8192);
    // The window's nonzeros; the nonzeros that count, and their distinct columns.
    let sums = shared_array!(u32; 3);
    let thread = thread::thread_idx_x();
    let block = thread::block_idx_x();
    let windows = rows.div_ceil(window_rows.max(1));
    let blocks = u64::from(thread::grid_dim_x().max(1));
    let window = u64::from(block) * u64::from(windows) / blocks;
    let first = window as u32 * window_rows;
    // SAFETY: `first + thread` and `first + place` are below `rows`; shared memory is written before the barrier after
    // which it is read.
    unsafe {
        let nonzeros_of = |place: u32| {
            let row = if order.address() == 0 {
                place
            } else {
                order.load(place as usize)
            } as usize;
            (row_ptr.load(row), row_ptr.load(row + 1))
        };
        let mut slot = thread;
        while slot < SLOTS {
            slots.store(slot as usize, EMPTY);
            slot += BLOCK;
        }
        if thread < 3 {
            sums.store(thread as usize, 0);
        }
        thread::sync_threads();
        let in_window = window_rows.min(rows - first);
        if thread < in_window {
            let (start, end) = nonzeros_of(first + thread);
            // At most 2^22 a row, so that the sum of all rows fits a u32.
            sums.atomic_add(0, (end - start).min(u32::MAX / MAX_WINDOW_ROWS));
        }
        thread::sync_threads();
        let nonzeros = sums.load(0);
        if nonzeros > longest {
            if thread < 3 {
                counts.store(3 * block as usize + thread as usize, 0);
            }
            return;
        }
        let one_in = sampled_one_in(nonzeros);
        let (mut counted, mut distinct) = (0, 0);
        let mut place = thread / WARP_SIZE;
        while place < in_window {
            let (start, end) = nonzeros_of(first + place);
            let mut k = u64::from(start) + u64::from(warp::lane_id());
            while k < u64::from(end) {
                let cols: [u32; BATCH as usize] = array::from_fn(|i| {
                    let k = k + i as u64 * u64::from(WARP_SIZE);
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
                k += u64::from(WARP_SIZE * BATCH);
            }
            place += BLOCK / WARP_SIZE;
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

/// A hash of a column number (the 32-bit finaliser of MurmurHash3).
#[inline(always)]
fn mix(col: u32) -> u32 {
    let mut hash = col;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}
