//! Exclusive prefix sums: each element is replaced by the sum of the elements before it.
//!
//! Many elements take three kernels. The first sums each tile of 4096 elements. The second, one
//! block, scans these sums. The third scans each tile, beginning with the tile's scanned sum.
//! Elements are read twice and written once, 12 bytes each, so a scan takes about one and a half
//! times as long as a copy. One block suffices for the sums: 2^32 elements have 2^20 tiles.
//!
//! Up to [`MAX_OF_ONE_BLOCK`] elements are scanned by one block, in a single launch: three launches
//! take longer, and planning scans short lists again and again.
//!
//! ```text
//! elements, tiles of 4     3 1 0 2 | 5 0 1 1 | 4
//! sums, scanned            0         6         13    total 17
//! elements, scanned        0 3 4 4 | 6 11 11 12 | 13
//! ```

use crate::unroll;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block of [`tile_sums`] and [`scan_tiles`].
const BLOCK: u32 = 256;

/// Threads in the one block of [`scan_sums`] and [`scan_few`].
const SUMS_BLOCK: u32 = 1024;

/// Elements that a lane loads at once: 16 bytes.
const WIDTH: usize = 4;

// A loop over them is unrolled by hand.
const _: () = assert!(WIDTH == 4);

/// Loads per lane.
const LOADS: usize = 4;

/// Elements of a tile, which a block takes.
pub const TILE: u32 = BLOCK * (WIDTH * LOADS) as u32;

/// Elements up to which one block scans them all. By Nsight Compute it takes 5 microseconds for 6400
/// elements and 8 for 12,500 on an H200, and three launches take 11.
///
/// It is a multiple of [`TILE`], so the number of tiles tells which way is taken.
pub const MAX_OF_ONE_BLOCK: u64 = 4 * TILE as u64;

/// Elements that a warp loads at once.
const WARP_LOAD: usize = WARP_SIZE as usize * WIDTH;

/// The launch of [`tile_sums`] and [`scan_tiles`] for `tiles` tiles, a block each.
pub fn launch_tiles(tiles: u32) -> LaunchConfig {
    LaunchConfig::new(tiles, BLOCK)
}

/// The launch of [`scan_sums`] and [`scan_few`], one block.
pub fn launch_sums() -> LaunchConfig {
    LaunchConfig::new(1, SUMS_BLOCK)
}

/// `sums[t]`, the sum of the elements of tile t. A block takes a tile.
///
/// # Safety
///
/// There are `len` elements, and `sums` has room for a number per tile. The launch is
/// [`launch_tiles`]'s.
#[kernel(name = "scan_tile_sums")]
pub unsafe fn tile_sums(len: u64, elements: Global<u32>, sums: GlobalMut<u64>) {
    let warp_sums = shared_array!(u64; 8);
    let first = first_of_lane();
    let mut sum = 0_u64;
    for load in 0..LOADS {
        // SAFETY: `load_vector` loads elements below `len` only.
        let vector = unsafe {
            load_vector(
                len,
                first + load * WARP_LOAD,
                |at| elements.load4(at),
                |at| elements.load(at),
            )
        };
        for element in vector {
            sum += u64::from(element);
        }
    }
    // SAFETY: `warp_sums` has a word for each of the 8 warps; there is a block per tile.
    unsafe {
        let (_, total) = scan_in_block(sum, warp_sums, |a, b| a + b, 0);
        if thread::thread_idx_x() == 0 {
            sums.store(thread::block_idx_x() as usize, total);
        }
    }
}

/// Replaces the sums of the tiles by their exclusive scan, and writes the total. One block takes
/// 4096 sums at a time.
///
/// # Safety
///
/// There are `tiles` sums, and `total` has room for one number. The launch is [`launch_sums`]'s.
#[kernel(name = "scan_sums")]
pub unsafe fn scan_sums(tiles: u32, sums: GlobalMut<u64>, total: GlobalMut<u64>) {
    // SAFETY: by the contract.
    unsafe { scan_by_one_block(tiles.into(), sums, |sum| sum, |sum| sum, total) };
}

/// Replaces the elements by their exclusive scan, modulo 2^32, and writes the total. One block takes
/// 4096 elements at a time.
///
/// # Safety
///
/// There are `len` elements, and `total` has room for one number. The launch is [`launch_sums`]'s.
#[kernel(name = "scan_few")]
pub unsafe fn scan_few(len: u64, elements: GlobalMut<u32>, total: GlobalMut<u64>) {
    // SAFETY: by the contract.
    unsafe { scan_by_one_block(len, elements, u64::from, |sum| sum as u32, total) };
}

/// Replaces the elements by their exclusive scan, and writes the total.
///
/// # Safety
///
/// There are `len` elements, and `total` has room for one number. The grid is one block of
/// [`SUMS_BLOCK`] threads, and all of them call it, once.
#[inline(always)]
unsafe fn scan_by_one_block<T: Element + Default>(
    len: u64,
    elements: GlobalMut<T>,
    widen: impl Fn(T) -> u64,
    narrow: impl Fn(u64) -> T,
    total: GlobalMut<u64>,
) {
    let warp_sums = shared_array!(u64; 32);
    let mut before = 0_u64;
    let mut chunk = 0_u64;
    while chunk < len {
        let first = (chunk + u64::from(thread::thread_idx_x()) * WIDTH as u64) as usize;
        // SAFETY: elements below `len`, each accessed by one thread. `warp_sums` has a word for each
        // of the 32 warps, and a barrier precedes its next use.
        unsafe {
            let vector: [T; WIDTH] =
                load_vector(len, first, |at| elements.load4(at), |at| elements.load(at));
            let vector = vector.map(&widen);
            let sum = vector[0] + vector[1] + vector[2] + vector[3];
            let (within, chunk_total) = scan_in_block(sum, warp_sums, |a, b| a + b, 0);
            let mut at = before + within;
            unroll!(k in 0..4 {
                if ((first + k) as u64) < len {
                    elements.store(first + k, narrow(at));
                }
                at += vector[k];
            });
            before += chunk_total;
            // The next round writes the warps' sums again.
            thread::sync_threads();
        }
        chunk += u64::from(SUMS_BLOCK) * WIDTH as u64;
    }
    if thread::thread_idx_x() == 0 {
        // SAFETY: one thread writes it, and there is room, by the contract.
        unsafe { total.store(0, before) };
    }
}

/// Replaces the elements by their exclusive scan, modulo 2^32; each tile begins at its scanned sum.
/// A block takes a tile.
///
/// # Safety
///
/// There are `len` elements; `sums` has the scanned sum of each tile. The launch is
/// [`launch_tiles`]'s.
#[kernel(name = "scan_tiles")]
pub unsafe fn scan_tiles(len: u64, sums: Global<u64>, elements: GlobalMut<u32>) {
    let warp_sums = shared_array!(u32; 8);
    let lane = warp::lane_id();
    let first = first_of_lane();
    // SAFETY: each lane reads and writes its own elements, below `len`. `warp_sums` has a word for
    // each of the 8 warps; all lanes reach the shuffles.
    unsafe {
        let vectors: [[u32; WIDTH]; LOADS] = core::array::from_fn(|load| {
            load_vector(
                len,
                first + load * WARP_LOAD,
                |at| elements.load4(at),
                |at| elements.load(at),
            )
        });
        // For each vector, the sum of what comes before it in the warp.
        let mut warp_sum = 0_u32;
        let before: [u32; LOADS] = core::array::from_fn(|load| {
            let sum = vectors[load]
                .into_iter()
                .fold(0_u32, |sum, element| sum.wrapping_add(element));
            let up_to = inclusive_in_warp(sum, u32::wrapping_add);
            let before = warp_sum.wrapping_add(up_to.wrapping_sub(sum));
            warp_sum = warp_sum.wrapping_add(warp::shfl_idx(FULL_MASK, up_to, 31, WARP_SIZE));
            before
        });
        let last_lane = if lane == WARP_SIZE - 1 { warp_sum } else { 0 };
        // The block scans one number per warp, which its last lane holds. Lane 0 gets the sum
        // before its warp.
        let (within, _) = scan_in_block(last_lane, warp_sums, u32::wrapping_add, 0);
        let warp_start = warp::shfl_idx(FULL_MASK, within, 0, WARP_SIZE);
        let start = (sums.load(thread::block_idx_x() as usize) as u32).wrapping_add(warp_start);
        for load in 0..LOADS {
            let mut at = start.wrapping_add(before[load]);
            let scanned: [u32; WIDTH] = core::array::from_fn(|k| {
                let this = at;
                at = at.wrapping_add(vectors[load][k]);
                this
            });
            let place = first + load * WARP_LOAD;
            if (place + WIDTH) as u64 <= len {
                elements.store4(place, scanned);
            } else {
                for (k, element) in scanned.into_iter().enumerate() {
                    if ((place + k) as u64) < len {
                        elements.store(place + k, element);
                    }
                }
            }
        }
    }
}

/// The first element of the calling lane in its block's tile. A warp takes `LOADS * WARP_LOAD`
/// neighbours.
#[inline(always)]
fn first_of_lane() -> usize {
    let warp = (thread::thread_idx_x() / WARP_SIZE) as usize;
    let tile = thread::block_idx_x() as usize * TILE as usize;
    tile + warp * (LOADS * WARP_LOAD) + warp::lane_id() as usize * WIDTH
}

/// The four elements from `first` on, a multiple of four; those from `len` on are 0.
#[inline(always)]
fn load_vector<T: Copy + Default>(
    len: u64,
    first: usize,
    load4: impl Fn(usize) -> [T; WIDTH],
    load: impl Fn(usize) -> T,
) -> [T; WIDTH] {
    if (first + WIDTH) as u64 <= len {
        load4(first)
    } else {
        core::array::from_fn(|k| {
            if ((first + k) as u64) < len {
                load(first + k)
            } else {
                T::default()
            }
        })
    }
}

/// The sum of `value` over the lanes up to and including this one. All lanes of the warp call it.
#[inline(always)]
pub fn inclusive_in_warp<T: Element>(value: T, add: impl Fn(T, T) -> T) -> T {
    let lane = warp::lane_id();
    let mut sum = value;
    let mut delta = 1;
    while delta < WARP_SIZE {
        let below = warp::shfl_up(FULL_MASK, sum, delta, WARP_SIZE);
        if lane >= delta {
            sum = add(below, sum);
        }
        delta *= 2;
    }
    sum
}

/// The sum of `value` over the threads of the block before this one, and over all threads.
///
/// # Safety
///
/// All threads of the block call it. `warp_sums` has room for a sum per warp, and no thread still
/// reads it from an earlier use.
#[inline(always)]
pub unsafe fn scan_in_block<T: Element>(
    value: T,
    warp_sums: Shared<T>,
    add: impl Fn(T, T) -> T,
    zero: T,
) -> (T, T) {
    let lane = warp::lane_id();
    let warp = thread::thread_idx_x() / WARP_SIZE;
    let warps = thread::block_dim_x() / WARP_SIZE;
    let up_to = inclusive_in_warp(value, &add);
    let below = warp::shfl_up(FULL_MASK, up_to, 1, WARP_SIZE);
    let before = if lane == 0 { zero } else { below };
    // SAFETY: there are at most 32 warps. The last lane of each writes its sum, and all read the
    // sums after the barrier.
    unsafe {
        if lane == WARP_SIZE - 1 {
            warp_sums.store(warp as usize, up_to);
        }
        thread::sync_threads();
        let of_warp = if lane < warps {
            warp_sums.load(lane as usize)
        } else {
            zero
        };
        let up_to_warp = inclusive_in_warp(of_warp, &add);
        let total = warp::shfl_idx(FULL_MASK, up_to_warp, WARP_SIZE - 1, WARP_SIZE);
        let below = warp::shfl_idx(FULL_MASK, up_to_warp, warp.saturating_sub(1), WARP_SIZE);
        let start = if warp == 0 { zero } else { below };
        (add(start, before), total)
    }
}
