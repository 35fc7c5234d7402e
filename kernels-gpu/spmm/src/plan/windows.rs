//! Windows of consecutive rows, of which a plan counts the nonzeros and the [distinct columns](super::distinct). They
//! say how many columns rows share, and so what an order of the rows gains.
//!
//! The nonzeros of a window are numbered row by row. Windows of many nonzeros are divided into parts of equally many
//! ([`divide`]), so that one hub does not keep one block busy for milliseconds.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block of [`divide`].
const DIVIDE_BLOCK: u32 = 256;

/// Maximum number of rows of a window.
pub const MAX_WINDOW_ROWS: u32 = 1024;

/// Maximum number of nonzeros of a part.
pub(super) const PART: u32 = 8192;

/// Slots of a window's table. 2048 of its nonzeros are expected to count, so twice as many distinct columns do not
/// occur.
pub const TABLE_SLOTS: usize = 4096;

/// Mean number of nonzeros that are counted of a window that has more.
const SAMPLE: u32 = 2048;

/// One of how many columns is counted, in a window of so many nonzeros.
pub fn sampled_one_in(nonzeros: u32) -> u32 {
    nonzeros.div_ceil(SAMPLE).max(1)
}

/// An empty slot. Others hold a column plus 1.
pub(super) const EMPTY: u32 = 0;

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
    /// The first nonzeros of each row that do not count; 0 if there is no permutation.
    pub skipped: u32,
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

/// The maximum number of parts of `windows` windows that share no rows, of a matrix with so many
/// nonzeros, and of those windows in several parts.
pub fn max_parts(windows: u32, nonzeros: u32) -> (u32, u32) {
    let further = nonzeros / PART;
    (windows.saturating_add(further), windows.min(further))
}

/// The places of the nonzeros of a row that count: all but the first `skipped` ones.
///
/// # Safety
///
/// The matrix of `row_ptr` has such a row.
#[inline(always)]
pub(super) unsafe fn counted_nonzeros(
    row_ptr: Global<u32>,
    row: usize,
    skipped: u32,
) -> (u32, u32) {
    // SAFETY: the contract.
    let (start, end) = unsafe { (row_ptr.load(row), row_ptr.load(row + 1)) };
    (start + skipped.min(end - start), end)
}

/// The nonzeros that count of the rows at `count` places of an order from `first` on, for all lanes of the calling
/// warp.
///
/// # Safety
///
/// The matrix of `windows` has a row for each of these places: by the order, which names different rows, or by its own
/// order if that is null. All lanes of the warp call it with the same arguments.
#[inline(always)]
unsafe fn count_nonzeros(windows: &Windows, first: u32, count: u32) -> u32 {
    let (row_ptr, order) = (windows.row_ptr, windows.order);
    // SAFETY: the contract.
    unsafe {
        if order.address() == 0 {
            return row_ptr.load((first + count) as usize) - row_ptr.load(first as usize);
        }
        // The rows are different ones, so the sum is at most the matrix's nonzeros.
        let mut nonzeros = 0;
        let mut place = warp::lane_id();
        while place < count {
            let row = order.load((first + place) as usize) as usize;
            let (start, end) = counted_nonzeros(row_ptr, row, windows.skipped);
            nonzeros += end - start;
            place += WARP_SIZE;
        }
        warp::reduce_add(FULL_MASK, nonzeros)
    }
}

/// Counts the nonzeros of windows, and lists their parts. A warp takes a window, the first warps take the last ones:
/// those of the third size, which take longest, then begin first.
///
/// A window has four numbers in `found`: its nonzeros that count, zeros for the two that
/// [`count_distinct`](super::distinct::count_distinct) counts, and the number of its table, if it has several parts. A
/// part has four numbers in `parts`: the first place and the rows of its window, the number of the window, and its own
/// number in the window. `counts` counts parts and tables. The tables that are counted are emptied.
///
/// # Safety
///
/// `windows` has the row pointers and an order of a matrix of at least one row, and skips nothing if the order is null.
/// Its windows have 1 to [`MAX_WINDOW_ROWS`] rows, and are no more than the rows make. `counts` has two zeros. `found`
/// has four numbers for each window. `parts` has four, and `tables` [`TABLE_SLOTS`], for each of the
/// [maximum number](max_parts) of each size.
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
    // SAFETY: the window has rows at `in_window` places from `first` on, all below `rows`, and all lanes of the warp
    // are here; the window has four numbers, and its parts and its table have theirs.
    unsafe {
        let nonzeros = count_nonzeros(&windows, first, in_window);
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
