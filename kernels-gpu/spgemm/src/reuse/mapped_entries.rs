//! Numeric, for sorted rows whose [entry map](crate::reuse::entry_map) exists: a warp takes 128
//! neighbouring entries of C.
//!
//! It is a product of a sparse matrix with a vector, whose rows are the entries of C: a row has a
//! nonzero for each product. Entries have one product or hundreds. So the lanes first load the
//! factors of neighbouring products, whatever their entries, and keep them in shared memory. Then
//! each lane adds up the products of its own entries.
//!
//! ```text
//! entries               0     1               2     3
//! products              0     1     2     3   4     5 6
//! factors loaded by     lane 0 .. lane 6, all at a time
//! added up by           lane 0, lane 1 (three), lane 2, lane 3 (two)
//! ```
//!
//! A product costs 8 bytes of the map and its two factors. An entry costs 4 bytes of the map and its
//! value.
//!
//! Source: Greathouse and Daga, "Efficient Sparse Matrix-Vector Multiplication on GPUs Using the CSR
//! Storage Format" (SC 2014), section III, where a block does so with rows of a sparse matrix.

use crate::reuse::entry_map::EntryMap;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{self, FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Entries of a lane.
const ENTRIES: usize = 4;

/// Products of a lane whose loads are in flight together.
const TOGETHER: usize = 4;

/// Products whose factors a warp has in shared memory at a time.
const STAGED: u32 = 2 * WARP_SIZE * TOGETHER as u32;

/// The launch for this many entries.
pub fn launch(entries: u32) -> LaunchConfig {
    LaunchConfig::new(entries.div_ceil(BLOCK * ENTRIES as u32), BLOCK)
}

/// The values of all entries that have products in the map; the others keep theirs. A warp takes
/// 128 neighbouring entries, a lane every 32nd of them, and 256 of their products at a time. An entry
/// is added up in the order of its products.
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
    let lane = warp::lane_id();
    let warp_of_block = (thread::thread_idx_x() / WARP_SIZE) as usize * STAGED as usize;
    let staged = [shared_array!(T; 2048), shared_array!(T; 2048)];
    let staged = staged.map(|factors| factors.offset(warp_of_block));
    let warp = (thread::index_1d() / u64::from(WARP_SIZE)) as usize;
    let first = warp * ENTRIES * WARP_SIZE as usize + lane as usize;
    // SAFETY: `entry` is below `entries` where it is used. The products of neighbouring entries are
    // neighbours, so all from `next` to before `end` are products of the warp's entries. Each warp
    // has its own factors, and synchronises between their writes and reads; its lanes agree on
    // `next` and `end`.
    unsafe {
        let bounds: [[u32; 2]; ENTRIES] = array::from_fn(|u| {
            let entry = first + u * WARP_SIZE as usize;
            if entry < entries as usize {
                [map.starts.load(entry), map.starts.load(entry + 1)]
            } else {
                [0, 0]
            }
        });
        let mut next = warp::shfl_idx(FULL_MASK, bounds[0][0], 0, WARP_SIZE);
        let last = bounds.iter().fold(0, |last, bounds| last.max(bounds[1]));
        let end = warp::reduce_max(FULL_MASK, last);
        let mut sums = [T::ZERO; ENTRIES];
        while next < end {
            load_factors(&map, [a, b], [next, end], staged);
            warp::sync_warp(FULL_MASK);
            let loaded = next + (end - next).min(STAGED);
            unroll!(u in 0..4 {
                let [from, to] = [bounds[u][0].max(next), bounds[u][1].min(loaded)];
                let mut at = from;
                while at < to {
                    let [a, b] = staged.map(|factors| factors.load((at - next) as usize));
                    sums[u] = a.mul_add(b, sums[u]);
                    at += 1;
                }
            });
            warp::sync_warp(FULL_MASK);
            next = loaded;
        }
        unroll!(u in 0..4 {
            let [start, end] = bounds[u];
            if start < end {
                values.store(first + u * WARP_SIZE as usize, sums[u]);
            }
        });
    }
}

/// Loads the factors of the products from the first to before the second position, at most
/// [`STAGED`], into `staged`: a lane every 32nd, [`TOGETHER`] at a time.
///
/// # Safety
///
/// The products are some of the map, and `a` and `b` the values of the operands. `staged` has room
/// for [`STAGED`] numbers each. All lanes of the warp call it with the same arguments.
#[inline(always)]
unsafe fn load_factors<T: Real>(
    map: &EntryMap,
    [a, b]: [Global<T>; 2],
    [first, end]: [u32; 2],
    staged: [Shared<T>; 2],
) {
    let count = (end - first).min(STAGED);
    let mut place = warp::lane_id();
    while place < count {
        let place_of = |u: usize| place + u as u32 * WARP_SIZE;
        let is_product = |u: usize| place_of(u) < count;
        // SAFETY: `first + place_of(u)` is below `end` where it is used, and `place_of(u)` below
        // `STAGED`, a multiple of what the warp loads at a time.
        unsafe {
            let sources: [[u32; 2]; TOGETHER] = array::from_fn(|u| {
                if is_product(u) {
                    map.products.load2(2 * (first + place_of(u)) as usize)
                } else {
                    [0, 0]
                }
            });
            let factors: [[T; 2]; TOGETHER] = array::from_fn(|u| {
                if is_product(u) {
                    let [k, j] = sources[u];
                    [a.load(k as usize), b.load(j as usize)]
                } else {
                    [T::ZERO; 2]
                }
            });
            unroll!(u in 0..4 {
                staged[0].store(place_of(u) as usize, factors[u][0]);
                staged[1].store(place_of(u) as usize, factors[u][1]);
            });
        }
        place += WARP_SIZE * TOGETHER as u32;
    }
}

const _: () = assert!(ENTRIES == 4 && TOGETHER == 4 && BLOCK / WARP_SIZE * STAGED == 2048);
