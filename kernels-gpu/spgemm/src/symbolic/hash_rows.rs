//! Symbolic, rows of some hundred to some thousand products: hash tables in shared memory, and the new columns sorted.
//!
//! Tables have at least twice as many slots as the row has products, so that probes are short; the hash is
//! multiplicative, as the low bits of a graph's columns are far from random. The columns found are compacted by votes and
//! sorted by a bitonic network, in shared memory too: it sorts the row's entries and not its products.

use crate::products::bins::WORK;
use crate::products::operands::{Items, Operands};
use crate::products::table::{self, EMPTY};
use crate::products::team::Team;
use crate::products::walk::Walk;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block of eight rows.
const BLOCK: u32 = 256;

/// Slots for each product, at least.
const SLOTS_A_PRODUCT: u32 = 2;

/// The launch for rows of up to that many products, a power of two: a row a warp, or a row a block.
pub fn launch(rows: u32, products: u32, block_each: bool) -> LaunchConfig {
    let bytes = 4 * words(products);
    if block_each {
        let block = (products / 8).clamp(128, 1024);
        LaunchConfig::new(rows, block).shared_bytes(bytes)
    } else {
        let teams = BLOCK / WARP_SIZE;
        LaunchConfig::new(rows.div_ceil(teams), BLOCK).shared_bytes(teams * bytes)
    }
}

/// Words of a team: the table, the list of its columns, their number.
const fn words(products: u32) -> u32 {
    (SLOTS_A_PRODUCT + 1) * products + 4
}

/// The columns of rows of up to `capacity` products, ascending, and their number; a warp a row, or with `WHOLE` 1 a block.
///
/// # Safety
///
/// The operands are what they say; the items are rows of up to `capacity` products, a power of two from 32 on; `work` is
/// `row_work`'s. `staged` has room for each row's entries from `starts[row]` on, `entries` a number for each row. The launch
/// is [`launch`]'s.
#[kernel(name = "spgemm_hash_rows", WHOLE = [0, 1])]
pub unsafe fn hash_rows<const WHOLE: u32>(
    operands: Operands,
    items: Items,
    capacity: u32,
    work: Global<u32>,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let output = Output {
        starts,
        staged,
        entries,
    };
    // SAFETY: the caller's contract.
    unsafe {
        if WHOLE == 1 {
            hash_row(Team::<true>, &operands, items, capacity, work, output);
        } else {
            hash_row(Team::<false>, &operands, items, capacity, work, output);
        }
    }
}

/// Where the columns go.
struct Output {
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
}

#[inline(always)]
unsafe fn hash_row<const BLOCK: bool>(
    team: Team<BLOCK>,
    operands: &Operands,
    items: Items,
    capacity: u32,
    work: Global<u32>,
    output: Output,
) {
    if team.index() >= items.count {
        return;
    }
    let slots = SLOTS_A_PRODUCT * capacity;
    let base = shared::dynamic_shared_mem::<u32>()
        .offset((team.index_in_block() * words(capacity)) as usize);
    let (list, count) = (
        base.offset(slots as usize),
        base.offset((slots + capacity) as usize),
    );
    // SAFETY: rows of the matrices; the team's own part of shared memory, synchronised between writes and reads.
    unsafe {
        let [row, _] = items.load(team.index());
        let mut slot = team.thread();
        while slot < slots {
            base.store(slot as usize, EMPTY);
            slot += team.threads();
        }
        if team.thread() == 0 {
            count.store(0, 0);
        }
        team.sync();
        let products = work.load(WORK * row as usize);
        let walk = Walk::columns(operands, row, products, [team.warp(), team.warps()]);
        walk.each::<32, false>(|column, _| {
            table::insert(base, slots, column);
        });
        team.sync();
        compact(team, base, slots, list, count);
        team.sync();
        let found = count.load(0);
        sort(team, list, found);
        let to = output.starts.load(row as usize) as usize;
        let mut i = team.thread();
        while i < found {
            output.staged.store(to + i as usize, list.load(i as usize));
            i += team.threads();
        }
        if team.thread() == 0 {
            output.entries.store(row as usize, found);
        }
    }
}

/// The table's columns one beside the other in `list`, and their number in `count`.
#[inline(always)]
unsafe fn compact<const BLOCK: bool>(
    team: Team<BLOCK>,
    table: Shared<u32>,
    slots: u32,
    list: Shared<u32>,
    count: Shared<u32>,
) {
    let lane = warp::lane_id();
    let mut first = team.warp() * WARP_SIZE;
    while first < slots {
        // SAFETY: slots of the table, of which there are a multiple of 32; no more columns than the list holds.
        unsafe {
            let column = table.load((first + lane) as usize);
            let taken = warp::ballot(FULL_MASK, column != EMPTY);
            let mut place = 0;
            if lane == 0 {
                place = count.atomic_add(0, taken.count_ones());
            }
            place = warp::shfl_idx(FULL_MASK, place, 0, WARP_SIZE);
            if column != EMPTY {
                let rank = (taken & ((1 << lane) - 1)).count_ones();
                list.store((place + rank) as usize, column);
            }
        }
        first += team.threads();
    }
}

/// Sorts the `count` numbers of `list`, which has room for the next power of two, by a bitonic network.
#[inline(always)]
unsafe fn sort<const BLOCK: bool>(team: Team<BLOCK>, list: Shared<u32>, count: u32) {
    let size = if count < 2 {
        1
    } else {
        2 << (count - 1).ilog2()
    };
    // SAFETY: numbers of the list; pairs of a step are apart, and the team synchronises between steps.
    unsafe {
        let mut i = count + team.thread();
        while i < size {
            list.store(i as usize, u32::MAX);
            i += team.threads();
        }
        team.sync();
        let mut run = 2;
        while run <= size {
            let mut distance = run / 2;
            while distance > 0 {
                let mut pair = team.thread();
                while pair < size / 2 {
                    let low = 2 * pair - (pair & (distance - 1));
                    let high = (low + distance) as usize;
                    let ascending = low & run == 0;
                    let low = low as usize;
                    let (a, b) = (list.load(low), list.load(high));
                    if (a > b) == ascending {
                        list.store(low, b);
                        list.store(high, a);
                    }
                    pair += team.threads();
                }
                team.sync();
                distance /= 2;
            }
            run *= 2;
        }
    }
}
