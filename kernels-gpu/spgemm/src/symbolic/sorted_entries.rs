//! Writing the entries of a [sorted](crate::symbolic::sort_rows) row.
//!
//! A group of lanes holds the row's sorted keys in shared memory, a key per product, and the
//! factors of each product behind them. A key whose column differs from that of the key before it
//! begins an entry. Its rank among such keys, by a ballot, is the entry's place in the row; its
//! lane adds up the products of all keys with the same column.
//!
//! ```text
//! sorted keys    3:1  7:0  7:2  9:3        column:number
//! begins         1    1    .    1
//! entry          3    7         9          place 0, 1, 2
//! ```

use crate::symbolic::sort_rows::RowSorter;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

impl<T: Real, const VALUES: bool> RowSorter<T, VALUES> {
    /// Adds up the products of each column, and writes the row's columns and sums. Gives the number
    /// of columns.
    ///
    /// `keys_shared` has the group's sorted keys, then the factors. `first` is the row's first
    /// column, `to` its first entry.
    ///
    /// # Safety
    ///
    /// All lanes of the warp call it, and the warp has synchronised. The output has room for the
    /// row's entries from `to` on.
    #[inline(always)]
    pub(super) unsafe fn sum_duplicates<
        const LANES: u32,
        const KEYS: usize,
        const TOGETHER: usize,
    >(
        &self,
        keys_shared: Shared<u32>,
        [first, to]: [u32; 2],
    ) -> u32 {
        let products = LANES * KEYS as u32;
        let number_bits = products.ilog2();
        let (group, lane_of_group) = (warp::lane_id() / LANES, warp::lane_id() % LANES);
        let column = |key: u32| key >> number_bits;
        // SAFETY: `at` and `next` are below `products`, of which keys and factors are in shared
        // memory. A row writes at most as many entries as it has products, which it has room for.
        unsafe {
            let mut count = 0;
            let mut start = 0;
            while start < products {
                // Each key with the one before and the one after; at the ends, with itself.
                let some: [[u32; 3]; TOGETHER] = array::from_fn(|u| {
                    let at = start + u as u32 * LANES + lane_of_group;
                    [at.saturating_sub(1), at, (at + 1).min(products - 1)]
                        .map(|at| keys_shared.load(at as usize))
                });
                let _: [(); TOGETHER] = array::from_fn(|u| {
                    let [before, key, after] = some[u];
                    let at = start + u as u32 * LANES + lane_of_group;
                    // A key begins a column if the key before it has another one.
                    let is_new = key != u32::MAX && (at == 0 || column(before) != column(key));
                    let new = warp::ballot(FULL_MASK, is_new) >> (group * LANES)
                        & (u32::MAX >> (WARP_SIZE - LANES));
                    if is_new {
                        let below = new & ((1 << lane_of_group) - 1);
                        let position = (to + count + below.count_ones()) as usize;
                        if self.writes_columns() {
                            self.columns.store(position, first + column(key));
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
                            self.values.store(position, sum);
                        }
                    }
                    count += new.count_ones();
                });
                start += TOGETHER as u32 * LANES;
            }
            count
        }
    }

    /// Writes the entries of a row of `number` products whose columns all differ.
    ///
    /// # Safety
    ///
    /// As for [`sum_duplicates`](Self::sum_duplicates).
    #[inline(always)]
    pub(super) unsafe fn write_distinct<
        const LANES: u32,
        const KEYS: usize,
        const TOGETHER: usize,
    >(
        &self,
        keys_shared: Shared<u32>,
        [first, to]: [u32; 2],
        number: u32,
    ) {
        let products = LANES * KEYS as u32;
        let number_bits = products.ilog2();
        let lane_of_group = warp::lane_id() % LANES;
        // SAFETY: positions are below `products`, of which keys and factors are in shared memory;
        // only those below `number` are written.
        unsafe {
            let mut start = 0;
            while start < products {
                let some: [u32; TOGETHER] = array::from_fn(|u| {
                    keys_shared.load((start + u as u32 * LANES + lane_of_group) as usize)
                });
                if self.writes_columns() {
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

    /// Whether columns are written.
    #[inline(always)]
    fn writes_columns(&self) -> bool {
        !VALUES || self.columns.address() != 0
    }
}

/// The factors of the product that a key belongs to.
///
/// # Safety
///
/// `keys` has `products` keys and then the factors of each product, and the group has synchronised.
#[inline(always)]
unsafe fn factors_of<T: Real>(keys: Shared<u32>, products: u32, key: u32) -> [T; 2] {
    let factors = keys.offset(products as usize).cast::<T>();
    // SAFETY: the key's low bits are the number of a product, by the contract.
    unsafe { factors.load2(2 * (key & (products - 1)) as usize) }
}
