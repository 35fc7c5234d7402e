//! Both phases, for rows of at most 512 products: the products' columns are sorted in registers.
//!
//! A group of 8, 16 or 32 lanes takes a row, a lane 2 to 16 products. The products are numbered,
//! and a key is a column (relative to the row's first) with the product's number in its low bits. A
//! [bitonic network](crate::products::network) sorts the keys. Equal columns then stand side by
//! side: no table, no atomics. The factors wait in shared memory under the product's number. Equal
//! columns keep the order of the products, so a sum is the same in every run.
//!
//! ```text
//! product    0  1  2  3       keys     7:0  3:1  7:2  9:3
//! column     7  3  7  9       sorted   3:1  7:0  7:2  9:3      columns 3, 7, 9
//! ```
//!
//! Three loads depend on each other: a nonzero of A, its row of B, the products. A group therefore
//! has several rows, and loads ahead for the next ones while it sorts. All lanes of the warp stay
//! together, since a shuffle of some lanes costs more. If no column appears twice in the warp's
//! rows, which is common, nothing is added up. A product costs its column and value of B.

use crate::products::bins::{MAX_SORTED_PRODUCTS, WORK_WORDS};
use crate::products::lane_products::LaneProducts;
use crate::products::network::{has_duplicates, load_keys, sorted, store_keys};
use crate::products::operands::{Factors, OperandPatterns, RowList};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 128;

/// Maximum number of rows that a group of lanes takes one after the other.
const MAX_ROUNDS: u32 = 8;

/// Maximum span of a row, so that a relative column and a product's number fit a u32 that is not
/// 2^32 - 1.
pub const MAX_SPAN: u32 = (1 << (u32::BITS - MAX_SORTED_PRODUCTS.ilog2())) - 1;

/// The lanes that take a row of at most `products` products.
const fn lanes(products: u32) -> u32 {
    match products {
        0..=32 => 8,
        33..=64 => 16,
        _ => 32,
    }
}

/// Bytes of shared memory of a row of at most `products` products: keys and factors, and padding
/// that gives the groups of a warp different banks.
const fn bytes(products: u32, element_bytes: u32) -> u32 {
    let words = products * (2 * element_bytes / 4 + 1);
    4 * (words + (lanes(products) + WARP_SIZE - words % WARP_SIZE) % WARP_SIZE)
}

/// How many rows a group of lanes takes one after the other, if at least `warps` warps should
/// remain.
pub fn rounds(rows: u32, products: u32, warps: u32) -> u32 {
    let rows_a_round = WARP_SIZE / lanes(products);
    (rows / warps.max(1) / rows_a_round).clamp(1, MAX_ROUNDS)
}

/// The launch for `rows` rows of at most `products` products: of [`sort_products`], or with
/// `element_bytes` 0 of [`sort_rows`].
pub fn launch(rows: u32, rounds: u32, products: u32, element_bytes: u32) -> LaunchConfig {
    let groups = BLOCK / lanes(products);
    LaunchConfig::new(rows.div_ceil(rounds * groups), BLOCK)
        .shared_bytes(groups * bytes(products, element_bytes))
}

/// The columns of each listed row, ascending, and their number. A group of lanes takes `rounds`
/// rows, one after the other.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The listed rows have at most `PRODUCTS` products
/// and span at most [`MAX_SPAN`] columns. `work` and `starts` are those of
/// [`row_work`](crate::analysis::work::row_work); `staged` has the room that `starts` gives each
/// row, `entries` a number per row. The launch is [`launch`]'s for `rounds`.
#[kernel(name = "spgemm_sort_rows", PRODUCTS = [16, 32, 64, 128, 256, 512])]
pub unsafe fn sort_rows<const PRODUCTS: u32>(
    operands: OperandPatterns,
    items: RowList,
    rounds: u32,
    work: Global<u32>,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let sorter = RowSorter::<f32, false> {
        operands,
        factors: Factors::new(Global::from_address(0), Global::from_address(0)),
        items,
        rounds,
        work,
        starts,
        columns: staged,
        values: GlobalMut::from_address(0),
        entries,
    };
    // SAFETY: `sort` requires what this kernel requires, and the launch has all lanes of each
    // group.
    unsafe { sorter.sort::<PRODUCTS>() };
}

/// The values of each listed row. Also its columns and their number, where `columns` and `entries`
/// are not null. A group of lanes takes `rounds` rows, one after the other.
///
/// # Safety
///
/// As for [`sort_rows`]; `starts` says where each row begins in `values` and `columns`, which have
/// room for its entries.
#[kernel(name = "spgemm_sort_products", T = [f32, f64], PRODUCTS = [16, 32, 64, 128, 256, 512])]
pub unsafe fn sort_products<T: Real, const PRODUCTS: u32>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    rounds: u32,
    work: Global<u32>,
    starts: Global<u32>,
    columns: GlobalMut<u32>,
    values: GlobalMut<T>,
    entries: GlobalMut<u32>,
) {
    let sorter = RowSorter::<T, true> {
        operands,
        factors,
        items,
        rounds,
        work,
        starts,
        columns,
        values,
        entries,
    };
    // SAFETY: `sort` requires what this kernel requires, and the launch has all lanes of each
    // group.
    unsafe { sorter.sort::<PRODUCTS>() };
}

/// The rows of a launch, and where their entries go.
pub(super) struct RowSorter<T, const VALUES: bool> {
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    rounds: u32,
    work: Global<u32>,
    starts: Global<u32>,
    pub(super) columns: GlobalMut<u32>,
    pub(super) values: GlobalMut<T>,
    entries: GlobalMut<u32>,
}

impl<T: Real, const VALUES: bool> RowSorter<T, VALUES> {
    /// Sorts the rows of the calling lane's group: as many products per lane as `PRODUCTS` asks.
    #[inline(always)]
    unsafe fn sort<const PRODUCTS: u32>(&self) {
        // SAFETY: `sort_row` requires of its caller what this function requires.
        unsafe {
            match PRODUCTS {
                16 => self.sort_row::<8, 2, 2>(),
                32 => self.sort_row::<8, 4, 4>(),
                64 => self.sort_row::<16, 4, 4>(),
                128 => self.sort_row::<32, 4, 4>(),
                256 => self.sort_row::<32, 8, 4>(),
                _ => self.sort_row::<32, 16, 4>(),
            }
        }
    }

    /// Sorts `rounds` rows of at most `LANES * KEYS` products, and writes their entries. `TOGETHER`
    /// keys of a lane are handled at a time.
    #[inline(always)]
    unsafe fn sort_row<const LANES: u32, const KEYS: usize, const TOGETHER: usize>(&self) {
        let products = LANES * KEYS as u32;
        let number_bits = products.ilog2();
        let groups = WARP_SIZE / LANES;
        let warp = (thread::index_1d() / u64::from(WARP_SIZE)) as u32;
        let lane = warp::lane_id();
        let (group, lane_of_group) = (lane / LANES, lane % LANES);
        let first_item = warp * self.rounds * groups;
        if first_item >= self.items.count {
            return;
        }
        let element_bytes = if VALUES { size_of::<T>() as u32 } else { 0 };
        let group_of_block = thread::thread_idx_x() / LANES;
        let shared = shared::dynamic_shared_mem::<u8>()
            .offset((group_of_block * bytes(products, element_bytes)) as usize);
        let keys_shared = shared.cast::<u32>();
        let factors = keys_shared.offset(products as usize).cast::<T>();
        let lanes_keys = keys_shared.offset((KEYS as u32 * lane_of_group) as usize);
        let lane_products = LaneProducts {
            operands: &self.operands,
            factors: self.factors,
        };
        // SAFETY: a lane loads an item only if its number is below `items.count`. Each group has
        // its own part of shared memory, and the warp synchronises between writes and reads.
        // `rounds` is the same for all lanes, so all of them reach each shuffle.
        unsafe {
            // Each lane loads one row of the warp; the groups take them by shuffles.
            let is_row = lane < self.rounds * groups && lane < self.items.count - first_item;
            let (mut row, mut first, mut to, mut nonzeros) = (0, 0, 0, (0, 0));
            if is_row {
                [row, _] = self.items.load(first_item + lane);
                first = self.work.load(WORK_WORDS * row as usize + 1);
                to = self.starts.load(row as usize);
                nonzeros = self.operands.a.row(row);
            }
            let owner = |round: u32| round * groups + group;
            let of_owner = |number: u32, round: u32| {
                warp::shfl_idx(FULL_MASK, number, owner(round), WARP_SIZE)
            };
            let nonzeros_of = |round: u32| {
                let start = of_owner(nonzeros.0, round);
                let end = of_owner(nonzeros.1, round);
                if round < self.rounds {
                    (start, end)
                } else {
                    (0, 0)
                }
            };
            let row_ref = |round: u32| {
                let (start, end) = nonzeros_of(round);
                lane_products.row_ref::<VALUES>(start + lane_of_group, end)
            };
            let mut range = lane_products.row_range(row_ref(0));
            let mut next_ref = row_ref(1);
            let mut entries = 0;
            for round in 0..self.rounds {
                let (first, to) = (of_owner(first, round), of_owner(to, round));
                // The loads for the next two rows are in flight while this row is sorted.
                let ahead = (lane_products.row_range(next_ref), row_ref(round + 2));
                let number = lane_products.for_each::<LANES, TOGETHER, VALUES>(
                    nonzeros_of(round),
                    range,
                    |number, column, pair| {
                        keys_shared
                            .store(number as usize, (column - first) << number_bits | number);
                        if VALUES {
                            factors.store2(2 * number as usize, pair);
                        }
                    },
                );
                (range, next_ref) = ahead;
                let _: [(); KEYS] = array::from_fn(|key| {
                    let at = key as u32 * LANES + lane_of_group;
                    if at >= number {
                        keys_shared.store(at as usize, u32::MAX);
                    }
                });
                warp::sync_warp(FULL_MASK);
                let keys = sorted::<LANES, KEYS>(load_keys(lanes_keys));
                warp::sync_warp(FULL_MASK);
                store_keys(lanes_keys, keys);
                warp::sync_warp(FULL_MASK);
                let count =
                    if warp::any(FULL_MASK, has_duplicates::<LANES, KEYS>(number_bits, keys)) {
                        self.sum_duplicates::<LANES, KEYS, TOGETHER>(keys_shared, [first, to])
                    } else {
                        self.write_distinct::<LANES, KEYS, TOGETHER>(
                            keys_shared,
                            [first, to],
                            number,
                        );
                        number
                    };
                // The lane that holds the row gets its count.
                let count = warp::shfl_idx(FULL_MASK, count, lane % groups * LANES, WARP_SIZE);
                if lane / groups == round {
                    entries = count;
                }
                warp::sync_warp(FULL_MASK);
            }
            if is_row && (!VALUES || self.entries.address() != 0) {
                self.entries.store(row as usize, entries);
            }
        }
    }
}

const _: () = assert!(BLOCK.is_multiple_of(WARP_SIZE));
