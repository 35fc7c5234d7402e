//! How far neighbouring rows share their columns, from a sample: what an order of the rows is good for.
//!
//! A block takes a window of 64 rows that come one after the other in an order, and counts nonzeros and different columns in a hash
//! table in shared memory. Of a window with more nonzeros than the table is for, only the columns count whose hash is in the
//! lower part of the range: the same columns in each row, so that the quotient stays what it is.

use crate::unroll::unroll;
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads in a block.
const BLOCK: u32 = 1024;

/// Columns that a lane loads at once: a window of hubs has millions.
const BATCH: u32 = 4;

/// Rows of a window.
pub const WINDOW: u32 = 64;

/// Slots of the table.
const SLOTS: u32 = 8192;

/// Nonzeros of a window that are counted, on average, if it has as many.
const SAMPLE: u32 = 2048;

/// No column.
const EMPTY: u32 = u32::MAX;

/// The launch of [`count_distinct`] for that many windows.
pub fn launch(windows: u32) -> LaunchConfig {
    LaunchConfig::new(windows, BLOCK)
}

/// Adds the nonzeros of some windows to `counts[0]`, and their different columns, each counted once in a window, to `counts[1]`. A
/// block for each window; the windows are evenly spread.
///
/// `order` is the rows' order, null for that in which they are.
///
/// # Safety
///
/// `row_ptr` and `col_idx` are those of a matrix of `rows` rows, not 0, columns below `u32::MAX`; `order` has a row of the
/// matrix for each of them; `counts` has two numbers.
#[kernel(name = "spmm_count_distinct")]
pub unsafe fn count_distinct(
    rows: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    order: Global<u32>,
    counts: GlobalMut<u64>,
) {
    let slots = shared_array!(u32; 8192);
    // The window's nonzeros; those counted, and the different columns among them.
    let sums = shared_array!(u32; 3);
    let thread = thread::thread_idx_x();
    let windows = rows.div_ceil(WINDOW);
    let window =
        u64::from(thread::block_idx_x()) * u64::from(windows) / u64::from(thread::grid_dim_x());
    let first = window as u32 * WINDOW;
    // SAFETY: rows below `rows`; shared memory is written before the barrier after which it is read.
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
        let in_window = WINDOW.min(rows - first);
        if thread < in_window {
            let (start, end) = nonzeros_of(first + thread);
            // A longer window is sampled as finely as one of 2^26 nonzeros a row.
            sums.atomic_add(0, (end - start).min(u32::MAX / WINDOW));
        }
        thread::sync_threads();
        let one_of = sums.load(0).div_ceil(SAMPLE).max(1);
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
                    if cols[i] != EMPTY && hash <= u32::MAX / one_of {
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
        if thread < 2 {
            let sum = sums.load(1 + thread as usize);
            counts.reduce_add(Scope::Device, thread as usize, u64::from(sum));
        }
    }
}

/// Whether a column was not in the table, where it is now; also if the table is full.
///
/// # Safety
///
/// The table's slots hold columns or are empty.
#[inline(always)]
unsafe fn insert(slots: Shared<u32>, col: u32, hash: u32) -> bool {
    for probe in 0..SLOTS {
        let slot = (hash.wrapping_add(probe) % SLOTS) as usize;
        // SAFETY: a slot of the table.
        let there = unsafe { slots.atomic_compare_exchange(slot, EMPTY, col) };
        if there == EMPTY || there == col {
            return there == EMPTY;
        }
    }
    true
}

/// All bits of a column number mixed into each other (the finalizer of MurmurHash3).
#[inline(always)]
fn mix(col: u32) -> u32 {
    let mut hash = col;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> Vec<&'static str> {
    count_distinct().entry_points().to_vec()
}
