//! How many columns consecutive rows share, from a sample of windows of rows. It says what an order of the rows gains.
//!
//! The nonzeros of a window are numbered row by row. Windows of many nonzeros are divided into parts of equally many
//! ([`divide`]), so that one hub does not keep one block busy for milliseconds. Blocks count the nonzeros and the
//! distinct columns of parts in hash tables in shared memory ([`count_distinct`]). The parts of one window then put
//! their columns into a table in global memory that they share. If a window has more than 2048 nonzeros, only the
//! columns whose hash is small are counted. These are the same columns in each row, so in the mean the same known share
//! of the nonzeros and of the distinct columns is counted. A warp first lists the columns to count, so that each lane
//! has one to put into the table.
//!
//! All threads of a block load neighbouring nonzeros, whatever the lengths of the rows. In the matrix's own order, the
//! nonzeros of a window follow one another. In another order, a block first adds up the lengths of the window's rows,
//! and each thread finds its row by binary search.

use super::hash::mix;
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::primitives::scan::scan_in_block;
use warprow_kernels_matrix::unroll;

/// Threads in a block of [`divide`].
const DIVIDE_BLOCK: u32 = 256;

/// Threads in a block of [`count_distinct`].
const BLOCK: u32 = 256;

/// Blocks of [`count_distinct`] that a multiprocessor has room for: a thread has 48 registers on `sm_80`.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 5;

/// Columns that a lane has in flight.
const BATCH: u32 = 4;

/// Columns that a warp has in flight.
const WARP_BATCH: u32 = BATCH * WARP_SIZE;

/// Maximum number of rows of a window.
pub const MAX_WINDOW_ROWS: u32 = 1024;

/// Rows of a window whose lengths a thread adds up.
const ROWS_PER_THREAD: usize = (MAX_WINDOW_ROWS / BLOCK) as usize;

// Loops over these are unrolled by hand.
const _: () = assert!(BATCH == 4 && ROWS_PER_THREAD == 4);

/// Maximum number of nonzeros of a part.
const PART: u32 = 8192;

/// Slots of a window's table. 2048 of its nonzeros are expected to count, so twice as many distinct columns do not
/// occur.
pub const TABLE_SLOTS: usize = 4096;

/// Slots of the smallest table of a part: a sample of few may be several times as large as expected.
const LEAST_SLOTS: u32 = 64;

/// Mean number of nonzeros that are counted of a window that has more.
const SAMPLE: u32 = 2048;

/// One of how many columns is counted, in a window of so many nonzeros.
pub fn sampled_one_in(nonzeros: u32) -> u32 {
    nonzeros.div_ceil(SAMPLE).max(1)
}

/// An empty slot. Others hold a column plus 1.
const EMPTY: u32 = 0;

/// Windows of one size.
#[repr(C)]
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct WindowSize {
    /// Rows of a window.
    pub rows: u32,
    /// The windows of the sample, evenly spread over the rows.
    pub count: u32,
}

impl WindowSize {
    /// At most `most` windows of 1 to [`MAX_WINDOW_ROWS`] rows of a matrix of `all` rows.
    pub fn new(rows: u32, most: u32, all: u32) -> Self {
        let rows = rows.clamp(1, MAX_WINDOW_ROWS);
        let count = all.div_ceil(rows).min(most);
        Self { rows, count }
    }

    /// No windows.
    pub const NONE: Self = Self { rows: 1, count: 0 };
}

/// Windows of up to three sizes. They are numbered one size after the other.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct Windows {
    /// The row pointers of the matrix.
    pub row_ptr: Global<u32>,
    /// A permutation of the rows, or null for their own order.
    pub order: Global<u32>,
    /// Rows of the matrix.
    pub rows: u32,
    /// The first size.
    pub first: WindowSize,
    /// The second.
    pub second: WindowSize,
    /// The third.
    pub third: WindowSize,
}

impl Windows {
    /// The number of all windows.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        self.first.count + self.second.count + self.third.count
    }
}

/// The launch of [`divide`] for so many windows.
pub fn launch_divide(windows: u32) -> LaunchConfig {
    LaunchConfig::new(windows.div_ceil(DIVIDE_BLOCK / WARP_SIZE), DIVIDE_BLOCK)
}

/// The launch of [`count_distinct`]. `parts` is an upper bound of the number of parts, at least 1.
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

/// Counts the nonzeros of windows, and lists their parts. A warp takes a window, the first warps take the last ones:
/// those of the third size, which take longest, then begin first.
///
/// A window has four numbers in `found`: its nonzeros, zeros for the two that [`count_distinct`]
/// counts, and the number of its table, if it has several parts. A part has four numbers in `parts`:
/// the first place and the rows of its window, the number of the window, and its own number in the
/// window. `counts` counts parts and tables. The tables that are counted are emptied.
///
/// # Safety
///
/// `windows` has the row pointers and an order of a matrix of at least one row; its windows have 1 to
/// [`MAX_WINDOW_ROWS`] rows, and are no more than the rows make; `counts` has two zeros; `found` has four numbers for
/// each window; `parts` has four, and `tables` [`TABLE_SLOTS`], for each of the [maximum number](max_parts) of each
/// size.
#[kernel(name = "spmm_divide_windows")]
pub unsafe fn divide(
    windows: Windows,
    counts: GlobalMut<u32>,
    found: GlobalMut<u32>,
    parts: GlobalMut<u32>,
    tables: GlobalMut<u32>,
) {
    let index = thread::index_1d() / u64::from(WARP_SIZE);
    let all = windows.count();
    if index >= u64::from(all) {
        return;
    }
    let lane = warp::lane_id();
    let number = all - 1 - index as u32;
    let (mut size, mut of_size) = (windows.first, number);
    if of_size >= size.count {
        of_size -= size.count;
        size = windows.second;
        if of_size >= size.count {
            of_size -= size.count;
            size = windows.third;
        }
    }
    let possible = windows.rows.div_ceil(size.rows.max(1));
    let window = u64::from(of_size) * u64::from(possible) / u64::from(size.count.max(1));
    let first = window as u32 * size.rows;
    let in_window = size.rows.min(windows.rows - first);
    // SAFETY: `first + place` is below `rows`; the window has four numbers, and its parts and its table have theirs.
    unsafe {
        // The rows of a window are different ones, so the sum is at most the matrix's nonzeros.
        let mut nonzeros = 0;
        let mut place = lane;
        while place < in_window {
            let row = row_at(windows.order, first + place);
            nonzeros += windows.row_ptr.load(row + 1) - windows.row_ptr.load(row);
            place += WARP_SIZE;
        }
        let nonzeros = warp::reduce_add(FULL_MASK, nonzeros);
        let of_window = nonzeros.div_ceil(PART);
        let (mut start, mut table) = (0, 0);
        if lane == 0 {
            start = counts.atomic_add(Scope::Device, 0, of_window);
            if of_window > 1 {
                table = counts.atomic_add(Scope::Device, 1, 1);
            }
            found.store4(4 * number as usize, [nonzeros, 0, 0, table]);
        }
        let start = warp::shfl_idx(FULL_MASK, start, 0, WARP_SIZE);
        let table = warp::shfl_idx(FULL_MASK, table, 0, WARP_SIZE);
        let mut part = lane;
        while part < of_window {
            let place = 4 * (start as usize + part as usize);
            parts.store4(place, [first, in_window, number, part]);
            part += WARP_SIZE;
        }
        let table = tables.offset(table as usize * TABLE_SLOTS);
        let mut slot = 4 * lane as usize;
        while of_window > 1 && slot < TABLE_SLOTS {
            table.store4(slot, [EMPTY; 4]);
            slot += 4 * WARP_SIZE as usize;
        }
    }
}

/// Adds to the second and the third number of each window in `found` its nonzeros in
/// [sampled](sampled_one_in) columns, and the number of these columns. A block takes one part of a
/// window after the other.
///
/// # Safety
///
/// `found`, `parts`, `tables` and `counts` are as [`divide`] has left them, for windows of one matrix and one
/// order; `row_ptr`, `col_idx` and `order` are of these, and columns are below `u32::MAX`.
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
            let most = u32::MAX / one_in;
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
                rows.load(row_ptr, order, first, in_window);
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
                    let counts = is_there && mix(cols[i]) <= most;
                    let lanes = warp::ballot(FULL_MASK, counts);
                    if counts {
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
    /// A single row, which begins at a nonzero of the matrix. For the rest see [`load`](Self::load).
    ///
    /// # Safety
    ///
    /// There is room for a row.
    #[inline(always)]
    unsafe fn set(&self, start: u32) {
        if thread::thread_idx_x() == 0 {
            // SAFETY: the contract.
            unsafe {
                self.before.store(0, 0);
                self.offset.store(0, start);
            }
        }
    }

    /// Loads the rows of a window. All threads of the block call it, and no thread still reads from an earlier window.
    /// They wait for each other before the first [`nonzero`](Self::nonzero).
    ///
    /// # Safety
    ///
    /// `order` has rows of the matrix of `row_ptr` for `in_window` places from `first` on, at most [`MAX_WINDOW_ROWS`].
    /// The arrays have room for as many rows, and for a sum of each warp.
    #[inline(always)]
    unsafe fn load(&self, row_ptr: Global<u32>, order: Global<u32>, first: u32, in_window: u32) {
        let place = ROWS_PER_THREAD as u32 * thread::thread_idx_x();
        // SAFETY: places below `in_window` have a row; each thread writes its own four numbers of 1024.
        unsafe {
            let rows: [(u32, u32); ROWS_PER_THREAD] = array::from_fn(|i| {
                let place = place + i as u32;
                if place < in_window {
                    let row = order.load((first + place) as usize) as usize;
                    (row_ptr.load(row), row_ptr.load(row + 1))
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
    /// A window of `in_window` rows is [loaded](Self::load), and has more than `number` nonzeros.
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
