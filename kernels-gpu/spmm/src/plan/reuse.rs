//! How many columns consecutive rows share, from a sample of windows of rows. It says what an order
//! of the rows gains.
//!
//! Windows with many nonzeros are divided into parts ([`divide`]), so that one hub does not keep one
//! block busy for milliseconds: a part takes an equal share of each row. Blocks count the nonzeros
//! and the distinct columns of parts in hash tables ([`count_distinct`]): of a whole window in
//! shared memory, of the parts of one window in a table in global memory that they share. Of a
//! window with more nonzeros than its table can hold, only columns with a small hash count. These
//! are the same columns in each row, so the quotient of distinct columns and nonzeros has the same
//! expected value.

use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block of [`divide`].
const DIVIDE_BLOCK: u32 = 256;

/// Threads in a block of [`count_distinct`].
const BLOCK: u32 = 512;

/// Blocks of [`count_distinct`] that a multiprocessor has room for: a thread has 40 registers.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 3;

/// Columns that a lane has in flight.
const BATCH: u32 = 4;

/// Maximum number of rows of a window.
pub const MAX_WINDOW_ROWS: u32 = 1024;

/// Maximum number of nonzeros of a part, if no row has more than 2^22.
const PART: u32 = 16_384;

/// Slots of the table of a window in one part.
const SLOTS: u32 = 8192;

/// Slots of the table of a window in several parts. 2048 of its nonzeros are expected to count, so twice as many
/// distinct columns do not occur.
pub const PARTS_TABLE_SLOTS: usize = 4096;

/// Nonzeros of a window that are counted, on average, if it has so many.
const SAMPLE: u32 = 2048;

/// One of how many columns counts, in a window of so many nonzeros.
pub fn sampled_one_in(nonzeros: u32) -> u32 {
    nonzeros.div_ceil(SAMPLE).max(1)
}

/// An empty slot. Others hold a column plus 1.
const EMPTY: u32 = 0;

/// Rows in windows of the same size.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct Windows {
    /// The row pointers of the matrix.
    pub row_ptr: Global<u32>,
    /// A permutation of the rows, or null for their own order.
    pub order: Global<u32>,
    /// Rows of the matrix.
    pub rows: u32,
    /// Rows of a window.
    pub window_rows: u32,
    /// The windows in the sample, evenly spread.
    pub count: u32,
    /// The number of the first of them among the windows of all sizes.
    pub first: u32,
}

/// The launch of [`divide`] for so many windows.
pub fn launch_divide(windows: u32) -> LaunchConfig {
    LaunchConfig::new(windows.div_ceil(DIVIDE_BLOCK / WARP_SIZE), DIVIDE_BLOCK)
}

/// The launch of [`count_distinct`] for at most so many parts, at least 1.
pub fn launch_count(parts: u32, multiprocessors: u32) -> LaunchConfig {
    let resident = BLOCKS_PER_MULTIPROCESSOR.saturating_mul(multiprocessors.max(1));
    LaunchConfig::new(parts.min(resident), BLOCK)
}

/// The maximum number of parts of `windows` windows that share no rows, of a matrix with so many
/// nonzeros, and of those windows in several parts.
pub fn max_parts(windows: u32, nonzeros: u32) -> (u32, u32) {
    let further = nonzeros / PART;
    (windows.saturating_add(further), windows.min(further))
}

/// The row at a place in an order.
///
/// # Safety
///
/// `order` is null or has a row for the place.
#[inline(always)]
unsafe fn row_at(order: Global<u32>, place: u32) -> usize {
    if order.address() == 0 {
        place as usize
    } else {
        // SAFETY: the caller's contract.
        unsafe { order.load(place as usize) as usize }
    }
}

/// Counts the nonzeros of windows, and lists their parts. A warp takes a window.
///
/// A window has four numbers in `found`: its nonzeros, zeros for the two that [`count_distinct`]
/// counts, and the number of its table, if it has several parts. A part has four numbers in `parts`:
/// the first place and the rows of its window, the number of the window, and its own number in the
/// window. `counts` counts parts and tables.
///
/// # Safety
///
/// `windows` has the row pointers and an order of a matrix of at least one row, windows of 1 to
/// [`MAX_WINDOW_ROWS`] rows, and no more windows than the rows make; `counts` has two numbers, and
/// for the first launch zeros; `found` has four numbers for each window, `parts` for each of their
/// [maximum number](max_parts).
#[kernel(name = "spmm_divide_windows")]
pub unsafe fn divide(
    windows: Windows,
    counts: GlobalMut<u32>,
    found: GlobalMut<u32>,
    parts: GlobalMut<u32>,
) {
    let index = thread::index_1d() / u64::from(WARP_SIZE);
    if index >= u64::from(windows.count) {
        return;
    }
    let lane = warp::lane_id();
    let all = windows.rows.div_ceil(windows.window_rows.max(1));
    let window = index * u64::from(all) / u64::from(windows.count);
    let first = window as u32 * windows.window_rows;
    let in_window = windows.window_rows.min(windows.rows - first);
    let number = windows.first + index as u32;
    // SAFETY: `first + place` is below `rows`; the window has four numbers, and its parts have theirs.
    unsafe {
        let mut nonzeros = 0;
        let mut place = lane;
        while place < in_window {
            let row = row_at(windows.order, first + place);
            let length = windows.row_ptr.load(row + 1) - windows.row_ptr.load(row);
            // At most 2^22 a row, so that the sum of all rows fits a u32.
            nonzeros += length.min(u32::MAX / MAX_WINDOW_ROWS);
            place += WARP_SIZE;
        }
        let mut mask = WARP_SIZE / 2;
        while mask > 0 {
            nonzeros += warp::shfl_xor(FULL_MASK, nonzeros, mask, WARP_SIZE);
            mask /= 2;
        }
        let of_window = nonzeros.div_ceil(PART);
        let mut start = 0;
        if lane == 0 {
            start = counts.atomic_add(Scope::Device, 0, of_window);
            let has_table = u32::from(of_window > 1);
            let table = counts.atomic_add(Scope::Device, 1, has_table);
            found.store4(4 * number as usize, [nonzeros, 0, 0, table]);
        }
        let start = warp::shfl_idx(FULL_MASK, start, 0, WARP_SIZE);
        let mut part = lane;
        while part < of_window {
            let place = 4 * (start as usize + part as usize);
            parts.store4(place, [first, in_window, number, part]);
            part += WARP_SIZE;
        }
    }
}

/// Adds to the second and the third number of each window in `found` its nonzeros in
/// [sampled](sampled_one_in) columns, and the number of these columns. A block takes one part of a
/// window after the other.
///
/// # Safety
///
/// `found`, `parts` and `counts` are as [`divide`] has left them, for windows of one matrix and one
/// order; `row_ptr`, `col_idx` and `order` are of these, and columns are below `u32::MAX`; `tables`
/// has [`PARTS_TABLE_SLOTS`] zeros for each window in several parts.
#[kernel(name = "spmm_count_distinct")]
pub unsafe fn count_distinct(
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    order: Global<u32>,
    counts: Global<u32>,
    parts: Global<u32>,
    tables: GlobalMut<u32>,
    found: GlobalMut<u32>,
) {
    let slots = shared_array!(u32; 8192);
    // The nonzeros of the part that count, and their distinct columns.
    let sums = shared_array!(u32; 2);
    let thread = thread::thread_idx_x();
    let mut item = thread::block_idx_x();
    // SAFETY: parts below their count are listed; places of a window are below the number of rows; shared memory is
    // written before the barrier after which it is read, and not written again before the next.
    unsafe {
        let items = counts.load(0);
        while item < items {
            let [first, in_window, number, part] = parts.load4(4 * item as usize);
            let nonzeros = found.load(4 * number as usize);
            let of_window = nonzeros.div_ceil(PART).max(1);
            let one_in = sampled_one_in(nonzeros);
            let is_whole = of_window == 1;
            let table = found.load(4 * number as usize + 3) as usize;
            let table = tables.offset(if is_whole {
                0
            } else {
                table * PARTS_TABLE_SLOTS
            });
            let mut slot = thread;
            while is_whole && slot < SLOTS {
                slots.store(slot as usize, EMPTY);
                slot += BLOCK;
            }
            if thread < 2 {
                sums.store(thread as usize, 0);
            }
            thread::sync_threads();
            let (mut counted, mut distinct) = (0, 0);
            let mut place = thread / WARP_SIZE;
            while place < in_window {
                let row = row_at(order, first + place);
                let (start, end) = (row_ptr.load(row), row_ptr.load(row + 1));
                // An equal share of the row.
                let share = |part: u32| {
                    let before = u64::from(end - start) * u64::from(part) / u64::from(of_window);
                    u64::from(start) + before
                };
                let (start, end) = (share(part), share(part + 1));
                let mut k = start + u64::from(warp::lane_id());
                while k < end {
                    let entries: [u32; BATCH as usize] = array::from_fn(|i| {
                        let k = k + i as u64 * u64::from(WARP_SIZE);
                        if k < end {
                            col_idx.load(k as usize) + 1
                        } else {
                            EMPTY
                        }
                    });
                    unroll!(i in 0..4 {
                        let hash = mix(entries[i].wrapping_sub(1));
                        if entries[i] != EMPTY && hash <= u32::MAX / one_in {
                            counted += 1;
                            let is_new = if is_whole {
                                insert(SLOTS, entries[i], hash, |slot| {
                                    slots.atomic_compare_exchange(slot, EMPTY, entries[i])
                                })
                            } else {
                                insert(PARTS_TABLE_SLOTS as u32, entries[i], hash, |slot| {
                                    let scope = Scope::Device;
                                    table.atomic_compare_exchange(scope, slot, EMPTY, entries[i])
                                })
                            };
                            if is_new {
                                distinct += 1;
                            }
                        }
                    });
                    k += u64::from(WARP_SIZE * BATCH);
                }
                place += BLOCK / WARP_SIZE;
            }
            sums.atomic_add(0, counted);
            sums.atomic_add(1, distinct);
            thread::sync_threads();
            if thread < 2 {
                let of_window = 4 * number as usize + 1 + thread as usize;
                found.atomic_add(Scope::Device, of_window, sums.load(thread as usize));
            }
            thread::sync_threads();
            item += thread::grid_dim_x();
        }
    }
}

/// Inserts an entry into a table of `slots` slots, and says whether it was not there; also true if
/// the table is full. `exchange` puts the entry into a slot if that is empty, and gives what was
/// there.
#[inline(always)]
fn insert(slots: u32, entry: u32, hash: u32, exchange: impl Fn(usize) -> u32) -> bool {
    for probe in 0..slots {
        let there = exchange((hash.wrapping_add(probe) % slots) as usize);
        if there == EMPTY || there == entry {
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
