//! The entry map: for each entry of a sorted row of C, the products that it adds up. *Sorted* are the
//! rows of few products that [`sort_rows`](crate::symbolic::sort_rows) would sort.
//!
//! The patterns of A and B decide which. The products of an entry stand side by side, in the order
//! of the nonzeros of A, and each is a pair of positions: a nonzero of A, and one of B.
//!
//! ```text
//! entries of C      0       1              2
//! products          a0 b2 | a0 b3, a1 b5 | a1 b6
//! starts            0       1              3       4
//! ```
//!
//! A run then needs no columns and no sort: [`mapped_entries`](crate::reuse::mapped_entries) gives
//! a lane an entry. An entry costs 4 bytes, a product 8.
//!
//! The map is made by a counting sort: [`count_products`] counts the products of each entry, a scan
//! gives each entry its place, and [`place_products`] puts the products there.

use crate::products::operands::{OperandPatterns, OutputPattern, RowList};
use crate::products::search;
use cuda_std::prelude::*;
use cuda_std::warp::{self, WARP_SIZE};

/// Lanes of a row. Rows of B are short where rows of C are, so more lanes would idle.
const LANES: u32 = 8;

/// Threads in a block.
const BLOCK: u32 = 128;

/// The products of the entries of C.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct EntryMap {
    /// Entry e has the products `starts[e]..starts[e + 1]`, none if its row is not sorted; a number
    /// more than C has entries.
    pub starts: Global<u32>,
    /// Two words per product: the position of its nonzero of A, and that of B.
    pub products: Global<u32>,
}

/// The launch of [`count_products`] and [`place_products`] for this many rows of at most `capacity`
/// entries.
pub fn launch(rows: u32, capacity: u32) -> LaunchConfig {
    let groups = BLOCK / LANES;
    LaunchConfig::new(rows.div_ceil(groups), BLOCK).shared_bytes(groups * bytes(capacity))
}

/// Bytes of shared memory for a row of at most `capacity` entries: a column and a number of each.
const fn bytes(capacity: u32) -> u32 {
    8 * capacity
}

/// Writes to `counts` how many products each entry of the listed rows has. Eight lanes take a row, a
/// lane every eighth nonzero of a row of B. A product costs its column and a binary search in shared
/// memory.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The items are whole rows of at most `capacity`
/// entries, a power of two. `c` is the pattern of their product, with columns, and `counts` has room
/// for a number per entry. The launch is [`launch`]'s.
#[kernel(name = "spgemm_count_products")]
pub unsafe fn count_products(
    operands: OperandPatterns,
    items: RowList,
    capacity: u32,
    c: OutputPattern,
    counts: GlobalMut<u32>,
) {
    // SAFETY: there is a row for the group, checked. It has `row.count` entries from `row.start` on,
    // and so many numbers. Lanes of the group add to different entries between two barriers.
    unsafe {
        let Some(row) = SortedRow::load(&operands, items, capacity, &c, |_| 0) else {
            return;
        };
        row.for_each_product(&operands, |entry, _| {
            row.numbers.store(entry, row.numbers.load(entry) + 1);
        });
        let mut i = warp::lane_id() % LANES;
        while i < row.count {
            counts.store((row.start + i) as usize, row.numbers.load(i as usize));
            i += LANES;
        }
    }
}

/// Writes the products of the listed rows, those of an entry in the order of the nonzeros of A.
/// Eight lanes take a row, as in [`count_products`].
///
/// # Safety
///
/// As for [`count_products`]; `starts` has the place of each entry's first product, and `products`
/// has room for a pair of each product.
#[kernel(name = "spgemm_place_products")]
pub unsafe fn place_products(
    operands: OperandPatterns,
    items: RowList,
    capacity: u32,
    c: OutputPattern,
    starts: Global<u32>,
    products: GlobalMut<u32>,
) {
    // SAFETY: as in `count_products`. An entry has as many places as products, from its start on.
    unsafe {
        let first_place = |entry: u32| starts.load(entry as usize);
        let Some(row) = SortedRow::load(&operands, items, capacity, &c, first_place) else {
            return;
        };
        row.for_each_product(&operands, |entry, product| {
            let place = row.numbers.load(entry);
            products.store2(2 * place as usize, product);
            row.numbers.store(entry, place + 1);
        });
    }
}

/// A row of C, which eight lanes take.
struct SortedRow {
    /// Its first entry.
    start: u32,
    /// The number of its entries.
    count: u32,
    /// The first position of its nonzeros of A, and one past the last.
    nonzeros: (u32, u32),
    /// The number of columns there is room for, a power of two.
    capacity: u32,
    /// Its columns, and 2^32 - 1 past the last one.
    columns: Shared<u32>,
    /// A number of each entry.
    numbers: Shared<u32>,
}

impl SortedRow {
    /// The row of the calling group, with `number_of` each entry of C; `None` if there is none.
    ///
    /// # Safety
    ///
    /// As for [`count_products`].
    #[inline(always)]
    unsafe fn load(
        operands: &OperandPatterns,
        items: RowList,
        capacity: u32,
        c: &OutputPattern,
        number_of: impl Fn(u32) -> u32,
    ) -> Option<Self> {
        let group = thread::thread_idx_x() / LANES;
        let item = thread::block_idx_x() * (BLOCK / LANES) + group;
        if item >= items.count {
            return None;
        }
        let columns = shared::dynamic_shared_mem::<u8>()
            .offset((group * bytes(capacity)) as usize)
            .cast::<u32>();
        let numbers = columns.offset(capacity as usize);
        // SAFETY: `item` is below `items.count`. Each group has its own part of shared memory.
        unsafe {
            let [row, _] = items.load(item);
            let (start, end) = c.row(row);
            let (count, from) = (end - start, c.columns(row));
            let mut i = warp::lane_id() % LANES;
            while i < capacity {
                let mut column = u32::MAX;
                if i < count {
                    column = from.load(i as usize);
                    numbers.store(i as usize, number_of(start + i));
                }
                columns.store(i as usize, column);
                i += LANES;
            }
            warp::sync_warp(lanes_of_group());
            Some(Self {
                start,
                count,
                nonzeros: operands.a.row(row),
                capacity,
                columns,
                numbers,
            })
        }
    }

    /// Calls `take` with each product of the row: its entry within the row, and its positions in A
    /// and B. The lanes take the products of one nonzero of A together, so theirs are different
    /// entries, and synchronise after it.
    ///
    /// # Safety
    ///
    /// `operands` are those of the row. All lanes of the group call it.
    #[inline(always)]
    unsafe fn for_each_product(&self, operands: &OperandPatterns, take: impl Fn(usize, [u32; 2])) {
        let (lane, group) = (warp::lane_id() % LANES, lanes_of_group());
        let (mut first_k, end) = self.nonzeros;
        // SAFETY: `k` and `j` are nonzeros of the row of A and of its rows of B, so each column is
        // one of the row of C. The loops run alike for all lanes of the group.
        unsafe {
            while first_k < end {
                // The extents of eight rows of B, a lane each.
                let k = first_k + lane;
                let mut extent = [0, 0];
                if k < end {
                    let row_of_b = operands.a.col_idx.load(k as usize) as usize;
                    extent = operands.extents.load2(4 * row_of_b);
                }
                let together = (end - first_k).min(LANES);
                for i in 0..together {
                    let [start, end] =
                        extent.map(|position| warp::shfl_idx(group, position, i, LANES));
                    let mut j = start + lane;
                    while j < end {
                        let column = operands.b.col_idx.load(j as usize);
                        let entry = search::position(self.columns, self.capacity, column);
                        take(entry, [first_k + i, j]);
                        j += LANES;
                    }
                    warp::sync_warp(group);
                }
                first_k += LANES;
            }
        }
    }
}

/// The lanes of the calling lane's group.
#[inline(always)]
fn lanes_of_group() -> u32 {
    (u32::MAX >> (WARP_SIZE - LANES)) << (warp::lane_id() / LANES * LANES)
}

const _: () = assert!(WARP_SIZE.is_multiple_of(LANES) && BLOCK.is_multiple_of(LANES));
