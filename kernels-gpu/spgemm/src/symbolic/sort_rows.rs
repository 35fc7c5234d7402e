//! Rows of up to 512 products: the products' columns sorted in registers, and where values are known, the products added up.
//!
//! A group of 8, 16 or 32 lanes takes a row, a lane up to sixteen products. A bitonic network sorts them: numbers that are
//! neighbours in a lane's registers are compared there, the others go by shuffles. Equal columns stand beside each other, so
//! that there is no table and there are no atomics. Through shared memory they come into the order in which lanes write
//! neighbours.
//!
//! The numeric phase does the same again for values alone: to sort up to 256 products costs less than to search for each one's
//! place. (R-MAT .35, 235868 rows and 33 million products, on an H200: 0.43 ms, and 0.56 with those of up to 512 sorted again.)
//! The first time they are sorted up to 512; with hash tables from 129 on the whole multiplication took 1.47 ms, and 1.21 so.
//!
//! A row waits for its nonzero of A, for the row of B that it names, and for the products, one after the other. So a group of lanes has several
//! rows to sort: what the next one wants of A and of B's row pointers is on its way meanwhile. (A uniform matrix of 5 million nonzeros,
//! squared: the numeric phase takes 0.33 ms with eight rows a group, 0.37 with one.) All lanes of the warp go on together, as a shuffle of some
//! takes many instructions to find out that they are there. And where no two products of the warp's rows have the same column, which is common
//! in short rows, they are written down as they are: 0.30 ms in the place of 0.33.
//!
//! With values, what is sorted is the column with the product's number in its low bits, one u32; the factors wait in shared memory under that
//! number. Products of the same column keep their order and are added up in it, so that the sum is that of every run.

use crate::products::bins::{MOST_PRODUCTS, WORK};
use crate::products::lane_products::LaneProducts;
use crate::products::network::{has_equals, load_keys, sorted, store_keys};
use crate::products::operands::{Factors, Items, Operands};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 128;

/// Rows that a group of lanes takes one after the other, at most.
const MOST_ROUNDS: u32 = 8;

/// Columns that a row may span, so that they fit a u32 with the number of a product, and there is a greater one.
pub const MOST_SPAN: u32 = (1 << (u32::BITS - MOST_PRODUCTS.ilog2())) - 1;

/// Lanes of a row of up to that many products.
const fn lanes(products: u32) -> u32 {
    match products {
        0..=32 => 8,
        33..=64 => 16,
        _ => 32,
    }
}

/// Bytes of shared memory of a row of up to `products` products: keys, factors, and so many more that a warp's groups have banks of their own.
const fn bytes(products: u32, element_bytes: u32) -> u32 {
    let words = products * (2 * element_bytes / 4 + 1);
    4 * (words + (lanes(products) + WARP_SIZE - words % WARP_SIZE) % WARP_SIZE)
}

/// How many of that many rows of up to `products` products a group of lanes takes one after the other, if so many warps are wanted.
pub fn rounds(rows: u32, products: u32, warps: u32) -> u32 {
    let rows_a_round = WARP_SIZE / lanes(products);
    (rows / warps.max(1) / rows_a_round).clamp(1, MOST_ROUNDS)
}

/// The launch for that many rows of up to `products` products: of [`sort_products`], or with no bytes an element of [`sort_rows`].
pub fn launch(rows: u32, rounds: u32, products: u32, element_bytes: u32) -> LaunchConfig {
    let groups = BLOCK / lanes(products);
    LaunchConfig::new(rows.div_ceil(rounds * groups), BLOCK)
        .shared_bytes(groups * bytes(products, element_bytes))
}

/// The columns of rows of up to `PRODUCTS` products, ascending, and their number.
///
/// # Safety
///
/// The operands are what they say; the items are rows of up to `PRODUCTS` products that span up to [`MOST_SPAN`] columns;
/// `work` is `row_work`'s. `staged` has room for each row's entries from `starts[row]` on, `entries` a number for each row. The
/// launch is [`launch`]'s for so many [`rounds`].
#[kernel(name = "spgemm_sort_rows", PRODUCTS = [16, 32, 64, 128, 256, 512])]
pub unsafe fn sort_rows<const PRODUCTS: u32>(
    operands: Operands,
    items: Items,
    rounds: u32,
    work: Global<u32>,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let rows = Rows::<f32, false> {
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
    // SAFETY: the caller's contract.
    unsafe { rows.sort::<PRODUCTS>() };
}

/// The values of rows of up to `PRODUCTS` products and, where `columns` and `entries` are not at address 0, their columns and number.
///
/// # Safety
///
/// As for [`sort_rows`]; `values` has room for each row's entries from `starts[row]` on, as `columns` has if it is wanted. The
/// launch is [`launch`]'s for so many [`rounds`].
#[kernel(name = "spgemm_sort_products", T = [f32, f64], PRODUCTS = [16, 32, 64, 128, 256, 512])]
pub unsafe fn sort_products<T: Real, const PRODUCTS: u32>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    rounds: u32,
    work: Global<u32>,
    starts: Global<u32>,
    columns: GlobalMut<u32>,
    values: GlobalMut<T>,
    entries: GlobalMut<u32>,
) {
    let rows = Rows::<T, true> {
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
    // SAFETY: the caller's contract.
    unsafe { rows.sort::<PRODUCTS>() };
}

/// The rows of a launch, and where their entries go.
struct Rows<T, const VALUES: bool> {
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    rounds: u32,
    work: Global<u32>,
    starts: Global<u32>,
    columns: GlobalMut<u32>,
    values: GlobalMut<T>,
    entries: GlobalMut<u32>,
}

impl<T: Real, const VALUES: bool> Rows<T, VALUES> {
    /// The row of the calling lane's group, `PRODUCTS / lanes(PRODUCTS)` products a lane.
    #[inline(always)]
    unsafe fn sort<const PRODUCTS: u32>(&self) {
        // SAFETY: the caller's contract.
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
        // SAFETY: rows of the matrices; the group's own part of shared memory, synchronised between writes and reads; all lanes
        // of the warp are here.
        unsafe {
            // A row for each lane that has one, all of them of the warp.
            let is_row = lane < self.rounds * groups && lane < self.items.count - first_item;
            let (mut row, mut first, mut to, mut nonzeros) = (0, 0, 0, (0, 0));
            if is_row {
                [row, _] = self.items.load(first_item + lane);
                first = self.work.load(WORK * row as usize + 1);
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
            let name = |round: u32| {
                let (start, end) = nonzeros_of(round);
                lane_products.name::<VALUES>(start + lane_of_group, end)
            };
            let mut found = lane_products.find(name(0));
            let mut named = name(1);
            let mut entries = 0;
            for round in 0..self.rounds {
                let (first, to) = (of_owner(first, round), of_owner(to, round));
                // What the rows after this one want first is on its way while this one is sorted.
                let ahead = (lane_products.find(named), name(round + 2));
                let number = lane_products.load::<LANES, TOGETHER, VALUES>(
                    nonzeros_of(round),
                    found,
                    |number, column, pair| {
                        keys_shared
                            .store(number as usize, (column - first) << number_bits | number);
                        if VALUES {
                            factors.store2(2 * number as usize, pair);
                        }
                    },
                );
                (found, named) = ahead;
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
                let count = if warp::any(FULL_MASK, has_equals::<LANES, KEYS>(number_bits, keys)) {
                    self.add_up_equals::<LANES, KEYS, TOGETHER>(keys_shared, [first, to])
                } else {
                    self.put_all::<LANES, KEYS, TOGETHER>(keys_shared, [first, to], number);
                    number
                };
                // The counts of a round's rows to the lanes that have the rows.
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

impl<T: Real, const VALUES: bool> Rows<T, VALUES> {
    /// Writes a row's columns from `first` on to their places from `to` on, and the sums of the products that have the same; gives how
    /// many columns there are. All lanes of the warp take part.
    #[inline(always)]
    unsafe fn add_up_equals<const LANES: u32, const KEYS: usize, const TOGETHER: usize>(
        &self,
        keys_shared: Shared<u32>,
        [first, to]: [u32; 2],
    ) -> u32 {
        let products = LANES * KEYS as u32;
        let number_bits = products.ilog2();
        let (group, lane_of_group) = (warp::lane_id() / LANES, warp::lane_id() % LANES);
        let column = |key: u32| key >> number_bits;
        // SAFETY: keys that the group has put there with their factors, and places of their entries.
        unsafe {
            let mut count = 0;
            let mut start = 0;
            while start < products {
                // A key with the one before and the one after; past the ends that itself.
                let some: [[u32; 3]; TOGETHER] = array::from_fn(|u| {
                    let at = start + u as u32 * LANES + lane_of_group;
                    [at.saturating_sub(1), at, (at + 1).min(products - 1)]
                        .map(|at| keys_shared.load(at as usize))
                });
                let _: [(); TOGETHER] = array::from_fn(|u| {
                    let [before, key, after] = some[u];
                    let at = start + u as u32 * LANES + lane_of_group;
                    // A key is new if its column is not that of the one before.
                    let is_new = key != u32::MAX && (at == 0 || column(before) != column(key));
                    let new = warp::ballot(FULL_MASK, is_new) >> (group * LANES)
                        & (u32::MAX >> (WARP_SIZE - LANES));
                    if is_new {
                        let below = new & ((1 << lane_of_group) - 1);
                        let place = (to + count + below.count_ones()) as usize;
                        if self.has_columns() {
                            self.columns.store(place, first + column(key));
                        }
                        if VALUES {
                            let [a, b]: [T; 2] = factors_of(keys_shared, products, key);
                            let mut sum = a.mul_add(b, T::ZERO);
                            let (mut next, mut other) = (at + 1, after);
                            while next < products && column(other) == column(key) {
                                let [a, b]: [T; 2] = factors_of(keys_shared, products, other);
                                sum = a.mul_add(b, sum);
                                next += 1;
                                if next < products {
                                    other = keys_shared.load(next as usize);
                                }
                            }
                            self.values.store(place, sum);
                        }
                    }
                    count += new.count_ones();
                });
                start += TOGETHER as u32 * LANES;
            }
            count
        }
    }

    /// Writes a row of `number` products to its places, if the columns of all are different.
    #[inline(always)]
    unsafe fn put_all<const LANES: u32, const KEYS: usize, const TOGETHER: usize>(
        &self,
        keys_shared: Shared<u32>,
        [first, to]: [u32; 2],
        number: u32,
    ) {
        let products = LANES * KEYS as u32;
        let number_bits = products.ilog2();
        let lane_of_group = warp::lane_id() % LANES;
        // SAFETY: keys that the group has put there with their factors, and places of their entries.
        unsafe {
            let mut start = 0;
            while start < products {
                let some: [u32; TOGETHER] = array::from_fn(|u| {
                    keys_shared.load((start + u as u32 * LANES + lane_of_group) as usize)
                });
                if self.has_columns() {
                    let _: [(); TOGETHER] = array::from_fn(|u| {
                        let at = start + u as u32 * LANES + lane_of_group;
                        if at < number {
                            let column = first + (some[u] >> number_bits);
                            self.columns.store((to + at) as usize, column);
                        }
                    });
                }
                if VALUES {
                    let values: [T; TOGETHER] = array::from_fn(|u| {
                        let [a, b] = if some[u] == u32::MAX {
                            [T::ZERO; 2]
                        } else {
                            factors_of(keys_shared, products, some[u])
                        };
                        a.mul_add(b, T::ZERO)
                    });
                    let _: [(); TOGETHER] = array::from_fn(|u| {
                        let at = start + u as u32 * LANES + lane_of_group;
                        if at < number {
                            self.values.store((to + at) as usize, values[u]);
                        }
                    });
                }
                start += TOGETHER as u32 * LANES;
            }
        }
    }

    /// Whether columns are wanted.
    #[inline(always)]
    fn has_columns(&self) -> bool {
        !VALUES || self.columns.address() != 0
    }
}

/// The factors of a key, which are behind the keys.
#[inline(always)]
unsafe fn factors_of<T: Real>(keys: Shared<u32>, products: u32, key: u32) -> [T; 2] {
    let factors = keys.offset(products as usize).cast::<T>();
    // SAFETY: the caller has put them there.
    unsafe { factors.load2(2 * (key & (products - 1)) as usize) }
}

const _: () = assert!(BLOCK.is_multiple_of(WARP_SIZE));
