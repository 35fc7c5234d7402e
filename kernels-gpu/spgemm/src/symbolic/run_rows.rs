//! Symbolic, banded and blocked matrices: rows of B that are runs of neighbouring columns, joined.
//!
//! Where every row of B that a row of C takes part of is a run, the row of C is a union of intervals, and a nonzero of A costs
//! the two ends of its interval whatever the number of its products. A lane has an interval; for 32 columns at a time each
//! lane makes a word of those in its interval, and `redux.or` joins the words.

use crate::products::bins::WORK;
use crate::products::operands::{Items, Operands};
use crate::products::window::bits;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch for that many rows, a warp each.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// The columns of rows, ascending, and their number; a warp a row.
///
/// # Safety
///
/// The operands are what they say; the items are rows all of whose rows of B are runs; `work` is `row_work`'s. `staged` has
/// room for each row's entries from `starts[row]` on, `entries` a number for each row.
#[kernel(name = "spgemm_run_rows")]
pub unsafe fn run_rows(
    operands: Operands,
    items: Items,
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
    // SAFETY: rows of the matrices; all lanes of the warp take part in its votes.
    unsafe {
        let [row, _] = items.load(item);
        let [_, first, span, _] = work.load4(WORK * row as usize);
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
            let mut word = bits(head, origin);
            let mut k = start + WARP_SIZE;
            while k < end {
                word |= bits(interval(k + lane), origin);
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
