//! Teams: a row has one warp, half of the warps of a block, or all of them, which are its team.
//!
//! ```text
//! task_size 4, blocks of 4 warps, one block of single warps:  row_ptr = [0, 3, 3, 13, 14, 16, 17, 19, 21]
//!
//! row                                 2 2 2 2    0 1 3 4    5 5 6 6    7 7 7 7
//! warp                                0 1 2 3    4 5 6 7    8 9 . .    . . . .
//! ```
//!
//! Long rows come first, because their blocks take longest. The others are sorted by length, so that the rows of a
//! block end together; or they keep the matrix's order if neighbouring rows share columns there. The last of them have
//! teams too: blocks that take a half or a fourth of the time fill the device where whole blocks would leave it half
//! empty. Every warp of a block has a row, and all teams of a block have the same number of warps.

use crate::items::Items;
use cuda_std::prelude::*;

/// Warps of a block, and of a long row. Eight take up to 1.2 times as long on graphs with hubs, where the longest row
/// of a block occupies the multiprocessor longer than the others.
pub const WARPS: u32 = 4;

/// The row of A of a warp, and the number of warps of its team, 1 if it is alone. All warps of a block have the same
/// number.
///
/// # Safety
///
/// `items` are teams, whose count is a multiple of [`WARPS`], and `warp` is below it; their rows start at a multiple of
/// 16 bytes.
#[inline(always)]
pub(crate) unsafe fn row_of_warp<T>(items: &Items<T>, warp: u32) -> (u32, u32) {
    if items.row.address() == 0 {
        return (warp, 1);
    }
    let in_block = warp % WARPS;
    // SAFETY: `row` has a number for each warp of whole blocks, and `warp` is one of them; its block starts at a
    // multiple of four.
    let rows = unsafe { items.row.load4((warp - in_block) as usize) };
    let [first, second] = if in_block < 2 {
        [rows[0], rows[1]]
    } else {
        [rows[2], rows[3]]
    };
    let row = if in_block.is_multiple_of(2) {
        first
    } else {
        second
    };
    let team = if rows[0] == rows[3] {
        WARPS
    } else if rows[0] == rows[1] {
        WARPS / 2
    } else {
        1
    };
    (row, team)
}

/// Threads in a block of the kernels that make teams.
const BLOCK: u32 = 256;

const _: () = assert!(WARPS == 4);

/// The launch of [`count_short`] and [`assign`] for so many rows: a thread each, and one for the end.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows / BLOCK + 1, BLOCK)
}

/// The row at position `place` of an order, and whether it is long.
///
/// # Safety
///
/// `row_ptr` is that of a matrix with more than `place` rows; `order` is a permutation of its rows, or null for their
/// own order.
#[inline(always)]
unsafe fn row_at(
    order: Global<u32>,
    place: usize,
    row_ptr: Global<u32>,
    longest_short: u32,
) -> (u32, bool) {
    // SAFETY: `place` is below the number of rows, by this function's contract.
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

/// `short[p]`: 1 if the row at position p of `order` has at most `longest_short` nonzeros, else 0; 0 at `p = rows`,
/// where the scan of `short` has the sum. A thread each.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, and `short` room for as many; `order` is a permutation of the rows, or null for
/// their own order.
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
    // SAFETY: `place` is at most `rows`, and `row_at` is called only below that.
    unsafe {
        let counts = place < rows as usize && !row_at(order, place, row_ptr, longest_short).1;
        short.store(place, counts.into());
    }
}

/// `row[w]`, the row of each warp; a thread a row. Of the rows that are not long, the first `single_rows` have a warp
/// each, the next `pair_rows` two, and the others all of a block.
///
/// # Safety
///
/// `row_ptr` and `order` are those of [`count_short`], and `shorts_before` is the exclusive prefix sum of its result;
/// `single_rows` is a multiple of [`WARPS`], `pair_rows` of 2, and their sum is at most the number of rows that are not
/// long; `row` starts at a multiple of 16 bytes, and has room for `single_rows` numbers, two for each of the
/// `pair_rows`, and [`WARPS`] for each other row.
#[kernel(name = "spmm_assign_teams")]
pub unsafe fn assign(
    rows: u32,
    order: Global<u32>,
    row_ptr: Global<u32>,
    longest_short: u32,
    shorts_before: Global<u32>,
    single_rows: u32,
    pair_rows: u32,
    row: GlobalMut<u32>,
) {
    let place = thread::index_1d();
    if place >= u64::from(rows) {
        return;
    }
    let place = place as usize;
    let warps = WARPS as usize;
    // SAFETY: `place` is below `rows`; the counts of long and short rows before it give places that no other thread
    // writes. Rows with four warps start at multiples of four, as `single_rows` and `2 * pair_rows` are such multiples,
    // and pairs at even numbers.
    unsafe {
        let (r, is_long) = row_at(order, place, row_ptr, longest_short);
        let shorts = shorts_before.load(place);
        if is_long {
            row.store4((place - shorts as usize) * warps, [r; WARPS as usize]);
            return;
        }
        let longs = (rows - shorts_before.load(rows as usize)) as usize;
        let singles = longs * warps;
        if shorts < single_rows {
            row.store(singles + shorts as usize, r);
            return;
        }
        let (shorts, pairs) = (shorts - single_rows, singles + single_rows as usize);
        if shorts < pair_rows {
            row.store2(pairs + 2 * shorts as usize, [r; 2]);
            return;
        }
        let others = pairs + 2 * pair_rows as usize;
        row.store4(
            others + (shorts - pair_rows) as usize * warps,
            [r; WARPS as usize],
        );
    }
}
