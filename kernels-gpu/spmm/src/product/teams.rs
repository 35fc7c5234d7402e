//! Teams: the warps that each row has, one, or all of a block's for a long row.
//!
//! ```text
//! task_size 4, blocks of 4 warps:     row_ptr = [0, 3, 3, 13, 14]
//!
//! row                                 2 2 2 2    0 1 3
//! warp                                0 1 2 3    4 5 6
//! ```
//!
//! Long rows come first, as their blocks take longest. In a block rows of one length keep in step: the others are in the order of their
//! lengths, or stay in that of the matrix if neighbours share columns there.

use cuda_std::prelude::*;

/// Warps of a block, and of a long row. On an H200 f32 took 0.84 to 0.95 times as long with four as with eight on graphs with hubs, where the
/// longest row of a block keeps its place longer than the others need it, and 0.95 to 1.05 times on others.
pub const WARPS: u32 = 4;

/// Threads in a block of the kernels that make teams.
const BLOCK: u32 = 256;

/// The launch of [`count_short`] and [`assign`] for that many rows: a thread each, and one for the end.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows / BLOCK + 1, BLOCK)
}

/// The row at a place of an order, and whether it is long.
///
/// # Safety
///
/// `row_ptr` is that of a matrix, `order` one of its rows, or null for the matrix's own, with that place.
#[inline(always)]
unsafe fn row_at(
    order: Global<u32>,
    place: usize,
    row_ptr: Global<u32>,
    longest_short: u32,
) -> (u32, bool) {
    // SAFETY: the caller's contract.
    unsafe {
        let row = if order.address() == 0 {
            place as u32
        } else {
            order.load(place)
        };
        let nonzeros = row_ptr.load(row as usize + 1) - row_ptr.load(row as usize);
        (row, nonzeros > longest_short)
    }
}

/// `short[p]`: 1 if the row at place p of `order` has at most `longest_short` nonzeros, else 0; and 0 at `p = rows`, where their scan
/// has the sum. A thread each.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, and `short` room for as many; `order` is one of the rows, or null for the matrix's own.
#[kernel(name = "spmm_count_short")]
pub unsafe fn count_short(
    rows: u32,
    order: Global<u32>,
    row_ptr: Global<u32>,
    longest_short: u32,
    short: GlobalMut<u32>,
) {
    let place = thread::index_1d();
    if place > u64::from(rows) {
        return;
    }
    let place = place as usize;
    // SAFETY: a row of the matrix, or the end.
    unsafe {
        let counts = place < rows as usize && !row_at(order, place, row_ptr, longest_short).1;
        short.store(place, counts.into());
    }
}

/// `row[w]`, the row that each warp is for; a thread a row.
///
/// # Safety
///
/// `row_ptr` and `order` are those of [`count_short`], `shorts_before` the sums of its numbers before each; `row` has room for [`WARPS`]
/// numbers for each long row and one for each short one.
#[kernel(name = "spmm_assign_teams")]
pub unsafe fn assign(
    rows: u32,
    order: Global<u32>,
    row_ptr: Global<u32>,
    longest_short: u32,
    shorts_before: Global<u32>,
    row: GlobalMut<u32>,
) {
    let place = thread::index_1d();
    if place >= u64::from(rows) {
        return;
    }
    let place = place as usize;
    // SAFETY: a row of the matrix, and the places that are its own.
    unsafe {
        let (r, is_long) = row_at(order, place, row_ptr, longest_short);
        let shorts = shorts_before.load(place) as usize;
        if is_long {
            let first = (place - shorts) * WARPS as usize;
            row.store4(first, [r; WARPS as usize]);
        } else {
            let longs = (rows - shorts_before.load(rows as usize)) as usize;
            row.store(longs * WARPS as usize + shorts, r);
        }
    }
}
