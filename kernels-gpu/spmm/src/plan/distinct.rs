//! The distinct columns of [windows](super::windows) of rows.
//!
//! Blocks count the nonzeros and the distinct columns of parts of windows in hash tables in shared memory. The parts of
//! one window then put their columns into a table in global memory that they share. If a window has more than 2048
//! nonzeros, only the columns whose hash is small are counted ([`is_sampled`]). These are the same columns in each row
//! of the window, so in the mean the same known share of the nonzeros and of the distinct columns is counted. Each
//! window has other columns in its sample: a column with many nonzeros must not count in all of them. A warp first
//! lists the columns to count, so that each lane has one to put into the table.
//!
//! All threads of a block load neighbouring nonzeros, whatever the lengths of the rows. In the matrix's own order, the
//! nonzeros of a window follow one another. In another order, a block first adds up the lengths of the window's rows,
//! and each thread finds its row by binary search.

use super::hash::mix;
use super::windows::{EMPTY, MAX_WINDOW_ROWS, PART, TABLE_SLOTS, counted_nonzeros, sampled_one_in};
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::primitives::scan::scan_in_block;
use warprow_kernels_matrix::unroll;

/// Threads in a block of [`count_distinct`].
const BLOCK: u32 = 256;

/// Blocks of [`count_distinct`] that a multiprocessor has room for: a thread has 46 registers on `sm_80`, which count
/// as 48.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 5;

/// Columns that a lane has in flight.
const BATCH: u32 = 4;

/// Columns that a warp has in flight.
const WARP_BATCH: u32 = BATCH * WARP_SIZE;

/// Rows of a window whose lengths a thread adds up.
const ROWS_PER_THREAD: usize = (MAX_WINDOW_ROWS / BLOCK) as usize;

// Loops over these are unrolled by hand.
const _: () = assert!(BATCH == 4 && ROWS_PER_THREAD == 4);

/// Slots of the smallest table of a part: a sample of few may be several times as large as expected.
const LEAST_SLOTS: u32 = 64;

/// Whether a column is in the sample of the window of this number, if one of `one_in` columns is. There are fewer than
/// `u32::MAX` windows. The number plus 1 is hashed, since `mix(0)` is 0: column 0 would be in each sample of window 0.
#[inline(always)]
pub fn is_sampled(col: u32, window: u32, one_in: u32) -> bool {
    mix(col ^ mix(window + 1)) <= u32::MAX / one_in
}

/// The launch of [`count_distinct`]. `parts` is an upper bound of the number of parts, at least 1.
pub fn launch_count(parts: u32, multiprocessors: u32) -> LaunchConfig {
    let resident = BLOCKS_PER_MULTIPROCESSOR.saturating_mul(multiprocessors.max(1));
    LaunchConfig::new(parts.min(resident), BLOCK)
}

/// Adds to the second and the third number of each window in `found` its nonzeros in
/// [sampled](sampled_one_in) columns, and the number of these columns. A block takes one part of a
/// window after the other.
///
/// # Safety
///
/// `found`, `parts`, `tables` and `counts` are as [`divide`](super::windows::divide) has left them, for windows of one
/// matrix and one order; `row_ptr`, `col_idx`, `order` and `skipped` are of these, and columns are below `u32::MAX`.
#[kernel(name = "spmm_count_distinct")]
pub unsafe fn count_distinct(
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    order: Global<u32>,
    skipped: u32,
    counts: Global<u32>,
    parts: Global<u32>,
    tables: GlobalMut<u32>,
    found: GlobalMut<u32>,
) {
    let slots = shared_array!(u32; 4096);
    let rows = RowsOfWindow {
        before: shared_array!(u32; 1024),
        offset: shared_array!(u32; 1024),
        warp_sums: shared_array!(u32; 8),
    };
    let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
    let warp = thread / WARP_SIZE;
    // For each warp the columns of a batch that count.
    let list = shared_array!(u32; 1024).offset((warp * WARP_BATCH) as usize);
    let mut item = thread::block_idx_x();
    // SAFETY: parts below their count are listed; places of a window are below the number of rows. The lengths of rows
    // are written before the barrier after which they are read; between that barrier and the next, slots change by
    // atomics alone. A list belongs to one warp, which synchronises before it reads and before it writes it again.
    unsafe {
        let items = counts.load(0);
        while item < items {
            let [first, in_window, number, part] = parts.load4(4 * item as usize);
            let nonzeros = found.load(4 * number as usize);
            let one_in = sampled_one_in(nonzeros);
            let is_whole = nonzeros <= PART;
            let begin = part * PART;
            let count = (nonzeros - begin).min(PART);
            // Twice as many slots as columns are expected.
            let used = (2 * count / one_in).max(LEAST_SLOTS).next_power_of_two();
            let mut slot = thread;
            while slot < used {
                slots.store(slot as usize, EMPTY);
                slot += BLOCK;
            }
            // In the matrix's own order, the window is like one row.
            let in_window = if order.address() == 0 {
                rows.set(row_ptr.load(first as usize));
                1
            } else {
                rows.load(row_ptr, order, skipped, first, in_window);
                in_window
            };
            thread::sync_threads();
            let (mut counted, mut distinct) = (0, 0);
            let mut batch = warp * WARP_BATCH;
            while batch < count {
                // Loads without conditions, so that a lane does not wait for one before the next.
                let places: [u32; BATCH as usize] = array::from_fn(|i| {
                    let at = batch + i as u32 * WARP_SIZE + lane;
                    rows.nonzero(in_window, begin + at.min(count - 1))
                });
                let cols: [u32; BATCH as usize] =
                    array::from_fn(|i| col_idx.load(places[i] as usize));
                let mut listed = 0;
                unroll!(i in 0..4 {
                    let is_there = batch + i as u32 * WARP_SIZE + lane < count;
                    let is_counted = is_there && is_sampled(cols[i], number, one_in);
                    let lanes = warp::ballot(FULL_MASK, is_counted);
                    if is_counted {
                        let before = (lanes & ((1 << lane) - 1)).count_ones();
                        list.store((listed + before) as usize, cols[i] + 1);
                    }
                    listed += lanes.count_ones();
                });
                warp::sync_warp(FULL_MASK);
                distinct += insert_listed(listed, list, used, slots);
                // Before the list is written again.
                warp::sync_warp(FULL_MASK);
                counted += listed;
                batch += BLOCK * BATCH;
            }
            if !is_whole {
                thread::sync_threads();
                let table = found.load(4 * number as usize + 3) as usize * TABLE_SLOTS;
                distinct = share_columns(used, slots, tables.offset(table));
            }
            let distinct: u32 = warp::reduce_add(FULL_MASK, distinct);
            if lane == 0 {
                found.atomic_add(Scope::Device, 4 * number as usize + 1, counted);
                found.atomic_add(Scope::Device, 4 * number as usize + 2, distinct);
            }
            thread::sync_threads();
            item += thread::grid_dim_x();
        }
    }
}

/// Puts the columns that a warp has listed into the table of the block, and counts those of the calling lane that were
/// not there.
///
/// # Safety
///
/// `list` has `listed` entries, `slots` a table of `used` slots. All lanes of the warp call it.
#[inline(always)]
unsafe fn insert_listed(listed: u32, list: Shared<u32>, used: u32, slots: Shared<u32>) -> u32 {
    let mut distinct = 0;
    let mut k = warp::lane_id();
    while k < listed {
        // SAFETY: `k` is below `listed`, and a table has slots below `used`.
        unsafe {
            let entry = list.load(k as usize);
            let exchange = |slot| slots.atomic_compare_exchange(slot, EMPTY, entry);
            distinct += u32::from(insert(used, entry, exchange));
        }
        k += WARP_SIZE;
    }
    distinct
}

/// Puts the columns in the table of the block into the table of the window, and counts those of the calling thread that
/// were not there.
///
/// # Safety
///
/// `slots` has a table of `used` slots, which is complete; `table` has [`TABLE_SLOTS`]. All threads of the block call
/// it.
#[inline(always)]
unsafe fn share_columns(used: u32, slots: Shared<u32>, table: GlobalMut<u32>) -> u32 {
    let mut distinct = 0;
    let mut slot = thread::thread_idx_x();
    while slot < used {
        // SAFETY: `slot` is below `used`, and the window's table has slots below `TABLE_SLOTS`.
        unsafe {
            let entry = slots.load(slot as usize);
            let exchange = |slot| table.atomic_compare_exchange(Scope::Device, slot, EMPTY, entry);
            if entry != EMPTY && insert(TABLE_SLOTS as u32, entry, exchange) {
                distinct += 1;
            }
        }
        slot += BLOCK;
    }
    distinct
}

/// The rows of a window in an order, in shared memory.
struct RowsOfWindow {
    /// The nonzeros of the window before each row.
    before: Shared<u32>,
    /// What to add to the number of a nonzero in the window to get its number in the matrix, modulo 2^32.
    offset: Shared<u32>,
    /// For the scan of a block.
    warp_sums: Shared<u32>,
}

impl RowsOfWindow {
    /// A single row, which begins at a nonzero of the matrix. [`nonzero`](Self::nonzero) with one row reads `offset`
    /// alone, so `before` is not written. All threads wait for each other before the first [`nonzero`](Self::nonzero).
    ///
    /// # Safety
    ///
    /// There is room for a row.
    #[inline(always)]
    unsafe fn set(&self, start: u32) {
        if thread::thread_idx_x() == 0 {
            // SAFETY: the contract.
            unsafe { self.offset.store(0, start) };
        }
    }

    /// Loads the nonzeros of the rows of a window that count: all but the first `skipped` ones of each. All threads of
    /// the block call it, and no thread still reads from an earlier window.
    /// They wait for each other before the first [`nonzero`](Self::nonzero).
    ///
    /// # Safety
    ///
    /// `order` has rows of the matrix of `row_ptr` for `in_window` places from `first` on, at most [`MAX_WINDOW_ROWS`].
    /// The arrays have room for as many rows, and for a sum of each warp.
    #[inline(always)]
    unsafe fn load(
        &self,
        row_ptr: Global<u32>,
        order: Global<u32>,
        skipped: u32,
        first: u32,
        in_window: u32,
    ) {
        let place = ROWS_PER_THREAD as u32 * thread::thread_idx_x();
        // SAFETY: places below `in_window` have a row; each thread writes its own four numbers of 1024.
        unsafe {
            let rows: [(u32, u32); ROWS_PER_THREAD] = array::from_fn(|i| {
                let place = place + i as u32;
                if place < in_window {
                    let row = order.load((first + place) as usize) as usize;
                    counted_nonzeros(row_ptr, row, skipped)
                } else {
                    (0, 0)
                }
            });
            let mut sum = 0;
            unroll!(i in 0..4 {
                sum += rows[i].1 - rows[i].0;
            });
            let (mut before, _) = scan_in_block(sum, self.warp_sums, |a, b| a + b, 0);
            unroll!(i in 0..4 {
                self.before.store(place as usize + i, before);
                self.offset.store(place as usize + i, rows[i].0.wrapping_sub(before));
                before += rows[i].1 - rows[i].0;
            });
        }
    }

    /// The number in the matrix of a nonzero of the window.
    ///
    /// # Safety
    ///
    /// A window of `in_window` rows is [loaded](Self::load), or one row is [set](Self::set); the window has more than
    /// `number` nonzeros.
    #[inline(always)]
    unsafe fn nonzero(&self, in_window: u32, number: u32) -> u32 {
        let (mut low, mut high) = (0, in_window - 1);
        // SAFETY: places below `in_window` are loaded.
        unsafe {
            // The last row that begins at the nonzero or before it: rows without nonzeros come earlier.
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                if self.before.load(middle as usize) <= number {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            self.offset.load(low as usize).wrapping_add(number)
        }
    }
}

/// Inserts an entry into a table of `slots` slots, a power of two, and says whether it was not there; also true if
/// the table is full, and then it is lost. `exchange` puts the entry into a slot if that is empty, and gives what was
/// there.
#[inline(always)]
fn insert(slots: u32, entry: u32, exchange: impl Fn(usize) -> u32) -> bool {
    let hash = mix(entry.wrapping_sub(1));
    for probe in 0..slots {
        let there = exchange((hash.wrapping_add(probe) & (slots - 1)) as usize);
        if there == EMPTY || there == entry {
            return there == EMPTY;
        }
    }
    true
}
