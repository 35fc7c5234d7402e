//! Symbolic, for rows of some hundred to some thousand products in a wide span: a hash table in
//! shared memory, then a sort.
//!
//! A team, a warp or a block, takes a row. It inserts the column of each product into the table,
//! compacts the columns found by votes, and sorts them by a bitonic network in shared memory. The
//! sort handles the row's entries, not its products.
//!
//! ```text
//! products   7 3 7 9 3      table   . 9 . . 3 . 7 .      compacted   9 3 7      sorted   3 7 9
//! ```
//!
//! The table has at least two slots per product, so probe sequences are short. The hash is
//! multiplicative, since the low bits of a graph's columns are far from random. A product costs 4
//! bytes and one or more atomic operations in shared memory.

use crate::products::bins::WORK_WORDS;
use crate::products::hash_table::{self, EMPTY};
use crate::products::operands::{OperandPatterns, RowList};
use crate::products::row_products::RowProducts;
use crate::products::team::Team;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block that takes a row per warp.
const BLOCK: u32 = 256;

/// Slots per product, at least.
const SLOTS_A_PRODUCT: u32 = 2;

/// The launch for rows of at most `products` products, a power of two: a row per block or per warp.
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

/// Shared words of a team: the table, the list of its columns, and their number.
const fn words(products: u32) -> u32 {
    (SLOTS_A_PRODUCT + 1) * products + 4
}

/// The columns of each listed row, ascending, and their number. A warp takes a row, with
/// `PER_BLOCK` 1 a block.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The listed rows have at most `capacity` products,
/// a power of two from 32 on. `work` and `starts` are those of
/// [`row_work`](crate::analysis::work::row_work); `staged` has the room that `starts` gives each
/// row, `entries` a number per row. The launch is [`launch`]'s.
#[kernel(name = "spgemm_hash_rows", PER_BLOCK = [0, 1])]
pub unsafe fn hash_rows<const PER_BLOCK: u32>(
    operands: OperandPatterns,
    items: RowList,
    capacity: u32,
    work: Global<u32>,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let output = StagedColumns {
        starts,
        staged,
        entries,
    };
    // SAFETY: the contract is the same.
    unsafe {
        if PER_BLOCK == 1 {
            hash_row(Team::<true>, &operands, items, capacity, work, output);
        } else {
            hash_row(Team::<false>, &operands, items, capacity, work, output);
        }
    }
}

/// Where the columns go: each row's start, the columns, the number of entries per row.
struct StagedColumns {
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
}

/// The columns of the team's row.
///
/// # Safety
///
/// As for [`hash_rows`].
#[inline(always)]
unsafe fn hash_row<const BLOCK: bool>(
    team: Team<BLOCK>,
    operands: &OperandPatterns,
    items: RowList,
    capacity: u32,
    work: Global<u32>,
    output: StagedColumns,
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
    // SAFETY: `team.index()` is below `items.count`, checked above. Each team has its own part of
    // shared memory, and synchronises between writes and reads. The table has more slots than the
    // row has products.
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
        let products = work.load(WORK_WORDS * row as usize);
        let row_products =
            RowProducts::columns(operands, row, products, [team.warp(), team.warps()]);
        row_products.for_each::<32, false>(|column, _| {
            hash_table::insert(base, slots, column);
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

/// Compacts the table's columns into `list`, and adds their number to `count`.
///
/// # Safety
///
/// `table` has `slots` slots, a multiple of 32; `list` has room for all its columns; `count` is 0.
/// The team has synchronised.
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
        // SAFETY: `first + lane` is below `slots`, a multiple of 32. Ranks are below the number of
        // columns in the table.
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

/// Sorts the first `count` numbers of `list` in ascending order, by a bitonic network.
///
/// # Safety
///
/// `list` has room for the next power of two of `count`. All threads of the team call it.
#[inline(always)]
unsafe fn sort<const BLOCK: bool>(team: Team<BLOCK>, list: Shared<u32>, count: u32) {
    let size = if count < 2 {
        1
    } else {
        2 << (count - 1).ilog2()
    };
    // SAFETY: `low` and `high` are below `size`. The pairs of a step are disjoint, and the team
    // synchronises between steps.
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
