//! Rows of up to 128 products: the products' columns sorted in registers, and where values are known, the products added up.
//!
//! A group of 8, 16 or 32 lanes takes a row, a lane one, two or four products. A bitonic network sorts them: numbers that are
//! neighbours in a lane's registers are compared there, the others go by shuffles. Equal columns stand beside each other, so
//! that there is no table and there are no atomics. Through shared memory the entries come into the order in which lanes write
//! neighbours.
//!
//! The numeric phase does the same again for values alone: to sort costs less than to search for each product's place.
//!
//! With values, what is sorted is the column with the product's number in its low bits, one u32; the factors wait in shared
//! memory under that number. Products of the same column keep their order and are added up in it, so that the sum is that
//! of every run.

use super::lane_products::LaneProducts;
use super::lanes::{group_mask, inclusive_sum};
use super::operands::{Factors, Items, Operands};
use super::work::WORK;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Products of the longest rows.
pub const MOST_PRODUCTS: u32 = 128;

/// Columns that a row may span, so that they fit a u32 with the number of a product, and there is a greater one.
pub const MOST_SPAN: u32 = (1 << (u32::BITS - MOST_PRODUCTS.ilog2())) - 1;

/// Words between the shared memory of groups, so that groups of a warp meet in fewer banks.
const PADDING: u32 = 16;

/// Lanes of a row of up to that many products.
const fn lanes(products: u32) -> u32 {
    match products {
        0..=32 => 8,
        33..=64 => 16,
        _ => 32,
    }
}

/// Bytes of shared memory of a row of up to `products` products: the factors, or later columns and sums; and the sorted keys.
const fn bytes(products: u32, element_bytes: u32) -> u32 {
    products * (2 * element_bytes + 4) + 4 * PADDING
}

/// The launch of [`sort_rows`] for that many rows of up to `products` products.
pub fn launch_columns(rows: u32, products: u32) -> LaunchConfig {
    launch(rows, products, size_of::<f32>() as u32)
}

/// The launch of [`sort_products`] for that many rows of up to `products` products.
pub fn launch_products<T: Real>(rows: u32, products: u32) -> LaunchConfig {
    launch(rows, products, size_of::<T>() as u32)
}

fn launch(rows: u32, products: u32, element_bytes: u32) -> LaunchConfig {
    let groups = BLOCK / lanes(products);
    LaunchConfig::new(rows.div_ceil(groups), BLOCK)
        .shared_bytes(groups * bytes(products, element_bytes))
}

/// The columns of rows of up to `PRODUCTS` products, ascending, and their number.
///
/// # Safety
///
/// The operands are what they say; the items are rows of up to `PRODUCTS` products that span up to [`MOST_SPAN`] columns;
/// `work` is `row_work`'s. `staged` has room for each row's entries from `starts[row]` on, `entries` a number for each row. The
/// launch is [`launch_columns`]'s.
#[kernel(name = "spgemm_sort_rows", PRODUCTS = [8, 16, 32, 64, 128])]
pub unsafe fn sort_rows<const PRODUCTS: u32>(
    operands: Operands,
    items: Items,
    work: Global<u32>,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let rows = Rows::<f32, false> {
        operands,
        factors: Factors::new(Global::from_address(0), Global::from_address(0)),
        items,
        work,
        starts,
        columns: staged,
        values: GlobalMut::from_address(0),
        entries,
    };
    // SAFETY: the caller's contract.
    unsafe { rows.sort::<PRODUCTS>() };
}

/// The values of rows of up to `PRODUCTS` products and, where `columns` and `entries` are not at address 0, their columns and
/// number.
///
/// # Safety
///
/// As for [`sort_rows`]; `values` has room for each row's entries from `starts[row]` on, as `columns` has if it is wanted. The
/// launch is [`launch_products`]'s.
#[kernel(name = "spgemm_sort_products", T = [f32, f64], PRODUCTS = [8, 16, 32, 64, 128])]
pub unsafe fn sort_products<T: Real, const PRODUCTS: u32>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
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
                8 => self.sort_row::<8, 1>(),
                16 => self.sort_row::<8, 2>(),
                32 => self.sort_row::<8, 4>(),
                64 => self.sort_row::<16, 4>(),
                _ => self.sort_row::<32, 4>(),
            }
        }
    }

    #[inline(always)]
    unsafe fn sort_row<const LANES: u32, const KEYS: usize>(&self) {
        let products = LANES * KEYS as u32;
        let number_bits = products.ilog2();
        let has_columns = !VALUES || self.columns.address() != 0;
        let group = thread::thread_idx_x() / LANES;
        let item = thread::block_idx_x() * (BLOCK / LANES) + group;
        if item >= self.items.count {
            return;
        }
        let mask = group_mask::<LANES>();
        let lane = warp::lane_id() % LANES;
        let shared = shared::dynamic_shared_mem::<u8>()
            .offset((group * bytes(products, size_of::<T>() as u32)) as usize);
        let factors = shared.cast::<T>();
        let sorted_keys = factors.offset(2 * products as usize).cast::<u32>();
        let sums = shared.cast::<T>();
        let columns = sums.offset(products as usize).cast::<u32>();
        // SAFETY: rows of the matrices; the group's own part of shared memory, synchronised between writes and reads; the
        // lanes of a group are here together.
        unsafe {
            let [row, _] = self.items.load(item);
            let first = self.work.load(WORK * row as usize + 1);
            let to = self.starts.load(row as usize);
            let products_of_row = LaneProducts {
                operands: &self.operands,
                factors: self.factors,
                nonzeros: self.operands.a.row(row),
            };
            let mine = products_of_row.load::<LANES, KEYS, VALUES>();
            let keys: [u32; KEYS] = array::from_fn(|key| {
                let (column, a, b) = mine[key];
                let number = key as u32 * LANES + lane;
                if VALUES {
                    factors.store2(2 * number as usize, [a, b]);
                }
                if column == u32::MAX {
                    u32::MAX
                } else {
                    (column - first) << number_bits | number
                }
            });
            let keys = sorted::<LANES, KEYS>(mask, keys);
            // Number `KEYS * lane + key` is the lane's key; it is new if its column is not that of the one before.
            let last = warp::shfl_up(mask, keys[KEYS - 1], 1, LANES);
            let new: [bool; KEYS] = array::from_fn(|key| {
                let is_first = key == 0 && lane == 0;
                let before = if key == 0 { last } else { keys[key - 1] };
                keys[key] != u32::MAX
                    && (is_first || keys[key] >> number_bits != before >> number_bits)
            });
            let mut found = [0; KEYS];
            let mut count = 0;
            let mut repeats = false;
            for key in 0..KEYS {
                found[key] = count;
                count += u32::from(new[key]);
                repeats |= keys[key] != u32::MAX && !new[key];
            }
            let up_to = inclusive_sum::<LANES>(mask, count);
            let all = warp::shfl_idx(mask, up_to, LANES - 1, LANES);
            let mut products_of_new = [T::ZERO; KEYS];
            if VALUES {
                let repeats = warp::any(mask, repeats);
                if repeats {
                    sorted_keys.store_array((KEYS as u32 * lane) as usize, keys);
                }
                warp::sync_warp(mask);
                let number = |key: u32| (key & (products - 1)) as usize;
                products_of_new = array::from_fn(|key| {
                    if !new[key] {
                        return T::ZERO;
                    }
                    let [a, b] = factors.load2(2 * number(keys[key]));
                    let mut sum = a.mul_add(b, T::ZERO);
                    let mut next = KEYS as u32 * lane + key as u32 + 1;
                    while repeats && next < products {
                        let other = sorted_keys.load(next as usize);
                        if other >> number_bits != keys[key] >> number_bits || other == u32::MAX {
                            break;
                        }
                        let [a, b] = factors.load2(2 * number(other));
                        sum = a.mul_add(b, sum);
                        next += 1;
                    }
                    sum
                });
                warp::sync_warp(mask);
            }
            for key in 0..KEYS {
                if new[key] {
                    let place = (up_to - count + found[key]) as usize;
                    if has_columns {
                        columns.store(place, first + (keys[key] >> number_bits));
                    }
                    if VALUES {
                        sums.store(place, products_of_new[key]);
                    }
                }
            }
            warp::sync_warp(mask);
            for key in 0..KEYS as u32 {
                let place = key * LANES + lane;
                if place < all {
                    let at = (to + place) as usize;
                    if has_columns {
                        self.columns.store(at, columns.load(place as usize));
                    }
                    if VALUES {
                        self.values.store(at, sums.load(place as usize));
                    }
                }
            }
            if lane == 0 && (!VALUES || self.entries.address() != 0) {
                self.entries.store(row as usize, all);
            }
        }
    }
}

/// The group's numbers in ascending order, number `KEYS * lane + key` the lane's key `key`, by a bitonic network whose merges
/// begin with a comparison of the first with the last, so that all of it ascends.
#[inline(always)]
fn sorted<const LANES: u32, const KEYS: usize>(mask: u32, keys: [u32; KEYS]) -> [u32; KEYS] {
    let lane = warp::lane_id();
    let mut keys = merged_in_lane::<KEYS, true>(keys);
    let mut run = 2;
    while run <= LANES {
        keys = array::from_fn(|key| {
            let other = warp::shfl_xor(mask, keys[KEYS - 1 - key], run - 1, LANES);
            least_or_greatest(keys[key], other, lane & (run / 2) == 0)
        });
        let mut distance = run / 4;
        while distance > 0 {
            keys = array::from_fn(|key| {
                let other = warp::shfl_xor(mask, keys[key], distance, LANES);
                least_or_greatest(keys[key], other, lane & distance == 0)
            });
            distance /= 2;
        }
        keys = merged_in_lane::<KEYS, false>(keys);
        run *= 2;
    }
    keys
}

/// A lane's keys in ascending order: of any order, or of a bitonic one.
#[inline(always)]
fn merged_in_lane<const KEYS: usize, const ANY: bool>(keys: [u32; KEYS]) -> [u32; KEYS] {
    let mut keys = keys;
    let mut order = |low: usize, high: usize| {
        let (a, b) = (keys[low], keys[high]);
        keys[low] = a.min(b);
        keys[high] = a.max(b);
    };
    match (KEYS, ANY) {
        (2, _) => order(0, 1),
        (4, true) => {
            order(0, 1);
            order(2, 3);
            order(0, 2);
            order(1, 3);
            order(1, 2);
        }
        (4, false) => {
            order(0, 2);
            order(1, 3);
            order(0, 1);
            order(2, 3);
        }
        _ => {}
    }
    keys
}

#[inline(always)]
fn least_or_greatest(number: u32, other: u32, least: bool) -> u32 {
    if least {
        number.min(other)
    } else {
        number.max(other)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> Vec<&'static str> {
    [
        sort_rows::<8>().entry_points(),
        sort_products::<f32, 8>().entry_points(),
    ]
    .concat()
}

const _: () = assert!(BLOCK.is_multiple_of(WARP_SIZE));
