//! Symbolic, rows of up to 32 products: the products' columns sorted in registers.
//!
//! A group of 8, 16 or 32 lanes takes a row, a lane a product. A bitonic network of shuffles sorts the columns, equal ones
//! stand beside each other, and the place of each new one is a count of bits in a vote: no table and no atomics.

use super::operands::{Items, Operands};
use super::walk::{Walk, group_mask};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch for that many rows, `lanes` lanes each.
pub fn launch(rows: u32, lanes: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / lanes), BLOCK)
}

/// The columns of rows of up to `LANES` products, ascending, and their number; `LANES` lanes a row.
///
/// # Safety
///
/// The operands are what they say; the items are rows of up to `LANES` products. `staged` has room for each row's
/// entries from `starts[row]` on, `entries` a number for each row.
#[kernel(name = "spgemm_sort_rows", LANES = [8, 16, 32])]
pub unsafe fn sort_rows<const LANES: u32>(
    operands: Operands,
    items: Items,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let item = thread::block_idx_x() * (BLOCK / LANES) + thread::thread_idx_x() / LANES;
    if item >= items.count {
        return;
    }
    let mask = group_mask::<LANES>();
    let lane = warp::lane_id() % LANES;
    // SAFETY: rows of the matrices; the lanes of a group are here together.
    unsafe {
        let [row, _] = items.load(item);
        let walk = Walk::columns(&operands, row, LANES, [0, 1]);
        let column = walk.one_a_lane::<LANES>();
        let column = sorted::<LANES>(mask, column);
        let below = warp::shfl_up(mask, column, 1, LANES);
        let new = column != u32::MAX && (lane == 0 || column != below);
        let news = warp::ballot(mask, new) & mask;
        if new {
            let rank = (news & ((1 << warp::lane_id()) - 1)).count_ones();
            staged.store((starts.load(row as usize) + rank) as usize, column);
        }
        if lane == 0 {
            entries.store(row as usize, news.count_ones());
        }
    }
}

/// The group's numbers in ascending order, by a bitonic network.
#[inline(always)]
fn sorted<const LANES: u32>(mask: u32, number: u32) -> u32 {
    let lane = warp::lane_id() % LANES;
    let mut number = number;
    let mut run = 2;
    while run <= LANES {
        let mut distance = run / 2;
        while distance > 0 {
            let other = warp::shfl_xor(mask, number, distance, LANES);
            // The last run is all lanes, and ascends.
            let ascending = lane & run == 0;
            number = if (lane & distance == 0) == ascending {
                number.min(other)
            } else {
                number.max(other)
            };
            distance /= 2;
        }
        run *= 2;
    }
    number
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> &'static [&'static str] {
    sort_rows::<8>().entry_points()
}

const _: () = assert!(BLOCK.is_multiple_of(WARP_SIZE));
