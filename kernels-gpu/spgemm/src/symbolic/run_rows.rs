//! Symbolic, for banded and blocked matrices: rows of B that are runs of neighbouring columns,
//! joined as intervals.
//!
//! If each row of B is a run, a row of C is a union of intervals. A lane holds one interval. For 32
//! columns at a time each lane makes a word of the columns in its interval, and `redux.or` joins
//! the words of the warp:
//!
//! ```text
//! lane 0  columns 3 to 6      . . . 1 1 1 1 .
//! lane 1  columns 5 to 7      . . . . . 1 1 1
//! redux.or                    . . . 1 1 1 1 1     five columns
//! ```
//!
//! A nonzero of A costs its column and the 16-byte extents of a row of B, however many products it
//! has.

use crate::products::bins::WORK_WORDS;
use crate::products::operands::{OperandPatterns, RowList};
use crate::products::window::interval_bits;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch for this many rows, a warp each.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// The columns of each listed row, ascending, and their number. A warp takes a row, a lane every
/// 32nd nonzero of A.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). All rows of B of the listed rows are runs of
/// neighbouring columns. `work` and `starts` are those of
/// [`row_work`](crate::analysis::work::row_work); `staged` has the room that `starts` gives each
/// row, `entries` a number per row. The launch is [`launch`]'s.
#[kernel(name = "spgemm_run_rows")]
pub unsafe fn run_rows(
    operands: OperandPatterns,
    items: RowList,
    work: Global<u32>,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let item = (thread::index_1d() / u64::from(WARP_SIZE)) as u32;
    if item >= items.count {
        return;
    }
    let lane = warp::lane_id();
    // SAFETY: `item` is below `items.count`, checked above; `interval` checks `k`. A row has at
    // most `span` entries, which it has room for. The loops run alike for all lanes of the warp, so
    // all reach each `redux`.
    unsafe {
        let [row, _] = items.load(item);
        let [_, first, span, _] = work.load4(WORK_WORDS * row as usize);
        let (start, end) = operands.a.row(row);
        let to = starts.load(row as usize);
        let interval = |k: u32| {
            if k >= end {
                return (u32::MAX, 0);
            }
            let column = operands.a.col_idx.load(k as usize) as usize;
            let [_, _, first, last] = operands.extents.load4(4 * column);
            (first, last)
        };
        let head = interval(start + lane);
        let mut found = 0;
        let mut covered = 0;
        while covered < span {
            let origin = first + covered;
            let mut word = interval_bits(head, origin);
            let mut k = start + WARP_SIZE;
            while k < end {
                word |= interval_bits(interval(k + lane), origin);
                k += WARP_SIZE;
            }
            let word = warp::reduce_or(FULL_MASK, word);
            if word >> lane & 1 == 1 {
                let rank = (word & ((1 << lane) - 1)).count_ones();
                staged.store((to + found + rank) as usize, origin + lane);
            }
            found += word.count_ones();
            covered += WARP_SIZE;
        }
        if lane == 0 {
            entries.store(row as usize, found);
        }
    }
}
