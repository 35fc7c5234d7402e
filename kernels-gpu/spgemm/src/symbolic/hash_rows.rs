//! Symbolic, for rows of some hundred to some thousand products in a wide span: a hash table in
//! shared memory, then a sort.
//!
//! A block takes a row. It inserts the column of each product into the table, compacts the columns
//! found by votes, and sorts them: the row's entries, not its products. For the sort it counts the
//! columns of each bucket ([`ColumnBuckets`]), scatters them into their buckets, and ranks each
//! column among those of its bucket. If a bucket has too many columns, a bitonic network sorts the
//! row instead.
//!
//! ```text
//! products    7 3 7 9 3      table  . 9 . . 3 . 7 .      compacted  9 3 7
//! buckets of two columns from 3 on: 3 4 | 5 6 | 7 8 | 9         scattered  3 | | 7 | 9
//! ```
//!
//! The table has at least two slots per product, so probe sequences are short. The hash is
//! multiplicative, since the low bits of a graph's columns are far from random. A product costs 4
//! bytes and one or more atomic operations in shared memory.

use crate::products::bins::WORK_WORDS;
use crate::products::column_buckets::ColumnBuckets;
use crate::products::hash_table::{self, EMPTY};
use crate::products::operands::{OperandPatterns, RowList};
use crate::products::row_products::RowProducts;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::primitives::scan::scan_in_block;

/// Slots per product, at least.
const SLOTS_PER_PRODUCT: u32 = 2;

/// Products that a row may have for each bucket.
const PRODUCTS_PER_BUCKET: u32 = 2;

/// Columns that a bucket may have. A column costs a load for each column of its bucket, and many in
/// one bucket cost more than the network.
const MAX_BUCKET_COLUMNS: u32 = 256;

/// The launch for rows of at most `products` products, a power of two from 256 on: a row per block.
pub fn launch(rows: u32, products: u32) -> LaunchConfig {
    let block = (products / 8).clamp(128, 1024);
    LaunchConfig::new(rows, block).shared_bytes(4 * words(products))
}

/// Shared words of a block: the table, the list of its columns, their number, and the number of
/// threads that have found a crowded bucket.
const fn words(products: u32) -> u32 {
    (SLOTS_PER_PRODUCT + 1) * products + 4
}

/// The columns of each listed row, ascending, and their number. A block takes a row.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The listed rows have at most `capacity` products,
/// a power of two from 256 on. `work` and `starts` are those of
/// [`row_work`](crate::analysis::work::row_work); `staged` has the room that `starts` gives each
/// row, `entries` a number per row. The launch is [`launch`]'s.
#[kernel(name = "spgemm_hash_rows")]
pub unsafe fn hash_rows(
    operands: OperandPatterns,
    items: RowList,
    capacity: u32,
    work: Global<u32>,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let block = BlockThread::current();
    let slots = SLOTS_PER_PRODUCT * capacity;
    let table = shared::dynamic_shared_mem::<u32>();
    let (list, count) = (
        table.offset(slots as usize),
        table.offset((slots + capacity) as usize),
    );
    let warp_sums = shared_array!(u32; 32);
    // SAFETY: there is a block per item. It synchronises between writes and reads of its shared
    // memory. The table has more slots than the row has products. When the columns are sorted, the
    // table is free: the buckets and as many columns as products need less room.
    unsafe {
        let [row, _] = items.load(thread::block_idx_x());
        let mut slot = block.thread;
        while slot < slots {
            table.store(slot as usize, EMPTY);
            slot += block.threads;
        }
        if block.thread == 0 {
            count.store(0, 0);
            count.store(1, 0);
        }
        thread::sync_threads();
        let [products, first, span, _] = work.load4(WORK_WORDS * row as usize);
        let warps = [block.warp, block.threads / WARP_SIZE];
        let row_products = RowProducts::columns(&operands, row, products, warps);
        row_products.for_each::<false>(|column, _| {
            hash_table::insert(table, slots, column);
        });
        thread::sync_threads();
        block.compact(table, slots, list, count);
        thread::sync_threads();
        let found = count.load(0);
        let to = staged.offset(starts.load(row as usize) as usize);
        let bucket_count = capacity / PRODUCTS_PER_BUCKET;
        let sort = BucketSort {
            buckets: ColumnBuckets::new(first, span, bucket_count),
            ends: table,
            columns: table.offset(bucket_count as usize),
            crowded: count.offset(1),
        };
        sort.count(block, list, found, bucket_count, warp_sums);
        if sort.crowded.load(0) == 0 {
            sort.write(block, list, found, to);
        } else {
            block.sort(list, found);
            let mut i = block.thread;
            while i < found {
                to.store(i as usize, list.load(i as usize));
                i += block.threads;
            }
        }
        if block.thread == 0 {
            entries.store(row as usize, found);
        }
    }
}

/// The sort of a row's columns by buckets, in shared memory.
struct BucketSort {
    /// Where a column belongs.
    buckets: ColumnBuckets,
    /// The place of each bucket's next column; in the end one past its last column.
    ends: Shared<u32>,
    /// The columns by bucket.
    columns: Shared<u32>,
    /// The number of threads that have found more than [`MAX_BUCKET_COLUMNS`] columns in a bucket.
    crowded: Shared<u32>,
}

impl BucketSort {
    /// Computes where each bucket's columns begin, and whether a bucket is crowded. The block has
    /// synchronised after it.
    ///
    /// # Safety
    ///
    /// `list` has `found` columns of the buckets' span. There are `bucket_count` buckets, a multiple
    /// of the block's threads, and `ends` has a word for each. `crowded` is 0. All threads of the
    /// block call it, and no thread still uses `ends`.
    #[inline(always)]
    unsafe fn count(
        &self,
        block: BlockThread,
        list: Shared<u32>,
        found: u32,
        bucket_count: u32,
        warp_sums: Shared<u32>,
    ) {
        // At least 1 anyway; `max` spares the panic path of a division by zero.
        let share = (bucket_count / block.threads.max(1)) as usize;
        let ends = self.ends.offset(block.thread as usize * share);
        // SAFETY: each thread has `share` buckets of its own; a barrier stands between their use by
        // it and by others.
        unsafe {
            for bucket in 0..share {
                ends.store(bucket, 0);
            }
            thread::sync_threads();
            let mut i = block.thread;
            while i < found {
                let bucket = self.buckets.of(list.load(i as usize));
                self.ends.atomic_add(bucket, 1);
                i += block.threads;
            }
            thread::sync_threads();
            let (mut columns, mut most) = (0, 0);
            for bucket in 0..share {
                let count = ends.load(bucket);
                columns += count;
                most = most.max(count);
            }
            let (mut start, _) = scan_in_block(columns, warp_sums, |a, b| a + b, 0);
            for bucket in 0..share {
                let count = ends.load(bucket);
                ends.store(bucket, start);
                start += count;
            }
            if most > MAX_BUCKET_COLUMNS {
                self.crowded.atomic_add(0, 1);
            }
            thread::sync_threads();
        }
    }

    /// Writes the columns in ascending order.
    ///
    /// # Safety
    ///
    /// [`count`](Self::count) has run for these columns, which all differ. There is room for them in
    /// `columns` and from `to` on.
    #[inline(always)]
    unsafe fn write(&self, block: BlockThread, list: Shared<u32>, found: u32, to: GlobalMut<u32>) {
        // SAFETY: places are below `found`, as each bucket has room for its columns. Columns differ,
        // so their ranks do.
        unsafe {
            let mut i = block.thread;
            while i < found {
                let column = list.load(i as usize);
                let place = self.ends.atomic_add(self.buckets.of(column), 1);
                self.columns.store(place as usize, column);
                i += block.threads;
            }
            thread::sync_threads();
            let mut i = block.thread;
            while i < found {
                let column = self.columns.load(i as usize);
                let bucket = self.buckets.of(column);
                let mut other = 0;
                if bucket > 0 {
                    other = self.ends.load(bucket - 1);
                }
                let (mut rank, end) = (other, self.ends.load(bucket));
                while other < end {
                    rank += u32::from(self.columns.load(other as usize) < column);
                    other += 1;
                }
                to.store(rank as usize, column);
                i += block.threads;
            }
        }
    }
}

/// The place of the calling thread in its block.
#[derive(Clone, Copy)]
struct BlockThread {
    thread: u32,
    /// The number of threads.
    threads: u32,
    warp: u32,
}

impl BlockThread {
    #[inline(always)]
    fn current() -> Self {
        let thread = thread::thread_idx_x();
        Self {
            thread,
            threads: thread::block_dim_x(),
            warp: thread / WARP_SIZE,
        }
    }

    /// Compacts the table's columns into `list`, and adds their number to `count`.
    ///
    /// # Safety
    ///
    /// `table` has `slots` slots, a multiple of 32; `list` has room for all its columns; `count` is
    /// 0. The block has synchronised.
    #[inline(always)]
    unsafe fn compact(self, table: Shared<u32>, slots: u32, list: Shared<u32>, count: Shared<u32>) {
        let lane = warp::lane_id();
        let mut first = self.warp * WARP_SIZE;
        while first < slots {
            // SAFETY: `first + lane` is below `slots`, a multiple of 32. Ranks are below the number of
            // columns in the table.
            unsafe {
                let column = table.load((first + lane) as usize);
                let taken = warp::ballot(FULL_MASK, column != EMPTY);
                let mut position = 0;
                if lane == 0 {
                    position = count.atomic_add(0, taken.count_ones());
                }
                position = warp::shfl_idx(FULL_MASK, position, 0, WARP_SIZE);
                if column != EMPTY {
                    let rank = (taken & ((1 << lane) - 1)).count_ones();
                    list.store((position + rank) as usize, column);
                }
            }
            first += self.threads;
        }
    }

    /// Sorts the first `count` numbers of `list` in ascending order, by a bitonic network.
    ///
    /// # Safety
    ///
    /// `list` has room for the next power of two of `count`. All threads of the block call it.
    #[inline(always)]
    unsafe fn sort(self, list: Shared<u32>, count: u32) {
        let size = if count < 2 {
            1
        } else {
            2 << (count - 1).ilog2()
        };
        // SAFETY: `low` and `high` are below `size`. The pairs of a step are disjoint, and the block
        // synchronises between steps.
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
