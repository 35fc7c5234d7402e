//! Numeric, for sorted rows whose [entry map](crate::reuse::entry_map) exists: a lane an entry.
//!
//! It is a product of a sparse matrix with a vector, whose rows are the entries of C: a row has a
//! nonzero for each product. Neighbouring lanes read neighbouring products, and the rows of A and B
//! that these come from are few. A product costs 8 bytes of the map and its two factors. An entry
//! costs 4 bytes of the map and its value.

use crate::reuse::entry_map::EntryMap;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{self, FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Entries of a lane. A product waits for three loads that follow each other, so a lane has those
/// of several entries in flight.
const ENTRIES: usize = 4;

/// Products of an entry whose loads are in flight together.
const TOGETHER: usize = 2;

/// Products of an entry that a lane adds up; the warp loads those that remain.
const OF_LANE: u32 = 8;

/// The launch for this many entries.
pub fn launch(entries: u32) -> LaunchConfig {
    LaunchConfig::new(entries.div_ceil(BLOCK * ENTRIES as u32), BLOCK)
}

/// The values of all entries that have products in the map; the others keep theirs. A warp takes
/// 128 neighbouring entries, a lane every 32nd of them. An entry of more than 8 products would keep
/// its lane waiting, so the warp loads the ninth and later ones, 32 at a time. An entry is added up in
/// the order of its products.
///
/// # Safety
///
/// `map` is the map of a product with this many entries. `a` and `b` are the values of the
/// operands, and `values` has room for the entries. The launch is [`launch`]'s.
#[kernel(name = "spgemm_mapped_entries", T = [f32, f64])]
pub unsafe fn mapped_entries<T: Real>(
    entries: u32,
    map: EntryMap,
    a: Global<T>,
    b: Global<T>,
    values: GlobalMut<T>,
) {
    let warp = (thread::index_1d() / u64::from(WARP_SIZE)) as usize;
    let first = warp * ENTRIES * WARP_SIZE as usize + warp::lane_id() as usize;
    // SAFETY: `entry` is below `entries` where it is used, and products below the end of an entry's
    // are products of the map.
    unsafe {
        let bounds: [[u32; 2]; ENTRIES] = array::from_fn(|u| {
            let entry = first + u * WARP_SIZE as usize;
            if entry < entries as usize {
                [map.starts.load(entry), map.starts.load(entry + 1)]
            } else {
                [0, 0]
            }
        });
        let mut sums = [T::ZERO; ENTRIES];
        let mut done = 0;
        let most = bounds
            .iter()
            .fold(0, |most, [start, end]| most.max(end - start));
        while done < most.min(OF_LANE) {
            // Whether the entry has this product, and its number in the map.
            let product = |u: usize, v: usize| {
                let [start, end] = bounds[u];
                let at = done + v as u32;
                (at < end - start, start + at)
            };
            let sources: [[[u32; 2]; TOGETHER]; ENTRIES] = array::from_fn(|u| {
                array::from_fn(|v| match product(u, v) {
                    (true, at) => map.products.load2(2 * at as usize),
                    (false, _) => [0, 0],
                })
            });
            let factors: [[[T; 2]; TOGETHER]; ENTRIES] = array::from_fn(|u| {
                array::from_fn(|v| match (product(u, v).0, sources[u][v]) {
                    (true, [k, j]) => [a.load(k as usize), b.load(j as usize)],
                    (false, _) => [T::ZERO; 2],
                })
            });
            unroll!(u in 0..4 {
                unroll!(v in 0..2 {
                    if product(u, v).0 {
                        let [a, b] = factors[u][v];
                        sums[u] = a.mul_add(b, sums[u]);
                    }
                });
            });
            done += TOGETHER as u32;
        }
        unroll!(u in 0..4 {
            let [start, end] = bounds[u];
            let mut long = warp::ballot(FULL_MASK, end - start > OF_LANE);
            while long != 0 {
                let owner = long.trailing_zeros();
                let of_owner = |number: u32| warp::shfl_idx(FULL_MASK, number, owner, WARP_SIZE);
                let rest = [of_owner(start) + OF_LANE, of_owner(end)];
                let sum = warp::shfl_idx(FULL_MASK, sums[u], owner, WARP_SIZE);
                let sum = add_in_order(&map, [a, b], rest, sum);
                if warp::lane_id() == owner {
                    sums[u] = sum;
                }
                long &= long - 1;
            }
            if start < end {
                values.store(first + u * WARP_SIZE as usize, sums[u]);
            }
        });
    }
}

/// The sum of `sum` and the products from the first to before the second position, in their order.
/// The lanes load a product each, and all of them add up all products.
///
/// # Safety
///
/// The products are some of the map, and `a` and `b` the values of the operands. All lanes of the
/// warp call it with the same arguments.
#[inline(always)]
unsafe fn add_in_order<T: Real>(
    map: &EntryMap,
    [a, b]: [Global<T>; 2],
    [mut first, end]: [u32; 2],
    mut sum: T,
) -> T {
    while first < end {
        let at = first + warp::lane_id();
        let mut factors = [T::ZERO; 2];
        if at < end {
            // SAFETY: `at` is below `end`, so it is one of the products.
            factors = unsafe {
                let [k, j] = map.products.load2(2 * at as usize);
                [a.load(k as usize), b.load(j as usize)]
            };
        }
        let count = (end - first).min(WARP_SIZE);
        for lane in 0..count {
            let [a, b] = factors.map(|factor| warp::shfl_idx(FULL_MASK, factor, lane, WARP_SIZE));
            sum = a.mul_add(b, sum);
        }
        first += count;
    }
    sum
}

const _: () = assert!(ENTRIES == 4 && TOGETHER == 2 && OF_LANE.is_multiple_of(TOGETHER as u32));
