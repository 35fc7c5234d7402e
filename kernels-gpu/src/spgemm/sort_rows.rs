//! Symbolic, rows of up to 128 products: the products' columns sorted in registers.
//!
//! A group of 8, 16 or 32 lanes takes a row, a lane a product, or up to four. A bitonic network of shuffles sorts the columns, equal ones
//! stand beside each other, and the place of each new one is a count of bits in a vote: no table and no atomics.

use super::lanes::group_mask;
use super::operands::{Items, Operands};
use super::walk::Walk;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

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
        let [column] = walk.columns_of_lane::<LANES, 1>();
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

/// The columns of rows of up to `32 * KEYS` products, ascending, and their number; a warp a row, `KEYS` products a lane.
///
/// # Safety
///
/// As for [`sort_rows`], the items rows of so many products.
#[kernel(name = "spgemm_sort_long_rows", KEYS = [2, 4])]
pub unsafe fn sort_long_rows<const KEYS: usize>(
    operands: Operands,
    items: Items,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let item = (thread::index_1d() / u64::from(WARP_SIZE)) as u32;
    if item >= items.count {
        return;
    }
    let lane = warp::lane_id();
    // SAFETY: rows of the matrices; the lanes of the warp are here together.
    unsafe {
        let [row, _] = items.load(item);
        let walk = Walk::columns(&operands, row, 0, [0, 1]);
        let columns = sorted_keys(walk.columns_of_lane::<32, KEYS>());
        let to = starts.load(row as usize);
        let mut found = 0;
        // The last column of the 32 before.
        let mut last = u32::MAX;
        #[allow(
            clippy::needless_range_loop,
            reason = "iterators over the arrays are not unrolled, and put them into local memory"
        )]
        for key in 0..KEYS {
            let column = columns[key];
            let below = warp::shfl_up(FULL_MASK, column, 1, WARP_SIZE);
            let below = if lane == 0 { last } else { below };
            let new = column != u32::MAX && column != below;
            let news = warp::ballot(FULL_MASK, new);
            if new {
                let rank = found + (news & ((1 << lane) - 1)).count_ones();
                staged.store((to + rank) as usize, column);
            }
            found += news.count_ones();
            last = warp::shfl_idx(FULL_MASK, column, WARP_SIZE - 1, WARP_SIZE);
        }
        if lane == 0 {
            entries.store(row as usize, found);
        }
    }
}

/// The warp's numbers in ascending order, number `32 k + lane` the lane's key `k`, by a bitonic network: neighbours less than
/// 32 apart are exchanged by shuffles, others are in the same lane.
#[inline(always)]
fn sorted_keys<const KEYS: usize>(mut keys: [u32; KEYS]) -> [u32; KEYS] {
    let lane = warp::lane_id();
    let mut run = 2;
    while run <= KEYS as u32 * WARP_SIZE {
        // Whether number `32 k + lane` is in a run that ascends; the last run does.
        let ascends = |key: usize| (key as u32 * WARP_SIZE + lane) & run == 0;
        let mut distance = run / 2;
        while distance >= WARP_SIZE {
            // The indices are constants, so that the keys stay in registers.
            keys = if distance == WARP_SIZE {
                array::from_fn(|key| {
                    exchanged(keys[key], keys[key ^ 1], key & 1 == 0, ascends(key))
                })
            } else {
                array::from_fn(|key| {
                    exchanged(
                        keys[key],
                        keys[(key ^ 2) % KEYS],
                        key & 2 == 0,
                        ascends(key),
                    )
                })
            };
            distance /= 2;
        }
        while distance > 0 {
            keys = array::from_fn(|key| {
                let other = warp::shfl_xor(FULL_MASK, keys[key], distance, WARP_SIZE);
                exchanged(keys[key], other, lane & distance == 0, ascends(key))
            });
            distance /= 2;
        }
        run *= 2;
    }
    keys
}

/// What stands in the place of `number` after it was compared with `other`, of which it is the lower or the upper one, in a
/// run that ascends or descends.
#[inline(always)]
fn exchanged(number: u32, other: u32, lower: bool, ascends: bool) -> u32 {
    if lower == ascends {
        number.min(other)
    } else {
        number.max(other)
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
            number = exchanged(number, other, lane & distance == 0, ascending);
            distance /= 2;
        }
        run *= 2;
    }
    number
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> Vec<&'static str> {
    [
        sort_rows::<8>().entry_points(),
        sort_long_rows::<2>().entry_points(),
    ]
    .concat()
}

const _: () = assert!(BLOCK.is_multiple_of(WARP_SIZE));
