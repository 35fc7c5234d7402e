//! Symbolic, rows of some hundred to some thousand products: hash tables in shared memory, and the new columns sorted.
//!
//! Tables have at least twice as many slots as the row has products, so that probes are short; the hash is
//! multiplicative, as the low bits of a graph's columns are far from random. The columns found are compacted by votes and
//! sorted by a bitonic network, in shared memory too: it sorts the row's entries and not its products.

use crate::products::bins::WORK;
use crate::products::operands::{Items, Operands};
use crate::products::table::{self, EMPTY};
use crate::products::walk::Walk;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Slots for each product, at least.
const SLOTS_A_PRODUCT: u32 = 2;

/// The launch for rows of up to that many products, a power of two from 256 on: a row a block.
pub fn launch(rows: u32, products: u32) -> LaunchConfig {
    let block = (products / 8).clamp(128, 1024);
    LaunchConfig::new(rows, block).shared_bytes(4 * words(products))
}

/// Words of a block: the table, the list of its columns, their number.
const fn words(products: u32) -> u32 {
    (SLOTS_A_PRODUCT + 1) * products + 4
}

/// The columns of rows of up to `capacity` products, ascending, and their number; a block a row.
///
/// # Safety
///
/// The operands are what they say; the items are rows of up to `capacity` products, a power of two from 32 on; `work` is
/// `row_work`'s. `staged` has room for each row's entries from `starts[row]` on, `entries` a number for each row. The launch
/// is [`launch`]'s.
#[kernel(name = "spgemm_hash_rows")]
pub unsafe fn hash_rows(
    operands: Operands,
    items: Items,
    capacity: u32,
    work: Global<u32>,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let block = Block::of_thread();
    let slots = SLOTS_A_PRODUCT * capacity;
    let table = shared::dynamic_shared_mem::<u32>();
    let (list, count) = (
        table.offset(slots as usize),
        table.offset((slots + capacity) as usize),
    );
    // SAFETY: rows of the matrices; the block synchronises between writes and reads of its shared memory.
    unsafe {
        let [row, _] = items.load(thread::block_idx_x());
        let mut slot = block.thread;
        while slot < slots {
            table.store(slot as usize, EMPTY);
            slot += block.threads;
        }
        if block.thread == 0 {
            count.store(0, 0);
        }
        thread::sync_threads();
        let products = work.load(WORK * row as usize);
        let walk = Walk::columns(&operands, row, products, [block.warp, block.warps]);
        walk.each::<32, false>(|column, _| {
            table::insert(table, slots, column);
        });
        thread::sync_threads();
        block.compact(table, slots, list, count);
        thread::sync_threads();
        let found = count.load(0);
        block.sort(list, found);
        let to = starts.load(row as usize) as usize;
        let mut i = block.thread;
        while i < found {
            staged.store(to + i as usize, list.load(i as usize));
            i += block.threads;
        }
        if block.thread == 0 {
            entries.store(row as usize, found);
        }
    }
}

/// The thread's place in its block.
#[derive(Clone, Copy)]
struct Block {
    thread: u32,
    threads: u32,
    warp: u32,
    warps: u32,
}

impl Block {
    #[inline(always)]
    fn of_thread() -> Self {
        let (thread, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        Self {
            thread,
            threads,
            warp: thread / WARP_SIZE,
            warps: threads / WARP_SIZE,
        }
    }

    /// The table's columns one beside the other in `list`, and their number in `count`.
    #[inline(always)]
    unsafe fn compact(self, table: Shared<u32>, slots: u32, list: Shared<u32>, count: Shared<u32>) {
        let lane = warp::lane_id();
        let mut first = self.warp * WARP_SIZE;
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
            first += self.threads;
        }
    }

    /// Sorts the `count` numbers of `list`, which has room for the next power of two, by a bitonic network.
    #[inline(always)]
    unsafe fn sort(self, list: Shared<u32>, count: u32) {
        let size = if count < 2 {
            1
        } else {
            2 << (count - 1).ilog2()
        };
        // SAFETY: numbers of the list; pairs of a step are apart, and the block synchronises between steps.
        unsafe {
            let mut i = count + self.thread;
            while i < size {
                list.store(i as usize, u32::MAX);
                i += self.threads;
            }
            thread::sync_threads();
            let mut run = 2;
            while run <= size {
                let mut distance = run / 2;
                while distance > 0 {
                    let mut pair = self.thread;
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
                        pair += self.threads;
                    }
                    thread::sync_threads();
                    distance /= 2;
                }
                run *= 2;
            }
        }
    }
}
