//! Stable sorting of pairs of a key and a value: a radix sort, least significant digit first, 8
//! bits per pass.
//!
//! A pass has three steps. [`count_digits`] counts each digit in each tile of 4096 pairs. A scan of
//! these counts in the order (digit, tile) gives the place of each tile's pairs of each digit.
//! [`scatter`] sorts its tile by the digit in shared memory and writes it out, so that neighbours
//! mostly go to neighbouring places. A pair's rank within its digit comes from `match_any`, which
//! tells each lane which lanes have the same digit. A counter per warp and digit adds the earlier
//! pairs.
//!
//! ```text
//! digits, tiles of 4   1 0 1 2 | 0 0 2 1
//! counts               digit 0: 1 2    digit 1: 2 1    digit 2: 1 1
//! scanned              0 1 | 3 5 | 6 7         tile 1 writes its two 0s from place 1 on
//! ```
//!
//! A pass reads keys twice, values once, and writes both: 20 bytes per pair.

use crate::primitives::scan::scan_in_block;
use crate::unroll;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Bits of a digit.
pub const DIGIT_BITS: u32 = 8;

/// The number of digits, and of threads in a block: a thread scans the counts of one digit.
pub const DIGITS: u32 = 1 << DIGIT_BITS;

/// Threads in a block.
const BLOCK: u32 = DIGITS;

/// Pairs per lane.
const PAIRS: usize = 16;

/// Warps in a block.
const WARPS: u32 = BLOCK / WARP_SIZE;

/// Pairs of a tile, which a block takes.
pub const TILE: u32 = BLOCK * PAIRS as u32;

/// The launch of both kernels for `tiles` tiles, a block each.
pub fn launch(tiles: u32) -> LaunchConfig {
    LaunchConfig::new(tiles, BLOCK)
}

/// The digit of the keys that a pass sorts by.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Digit {
    /// The position of its lowest bit.
    pub shift: u32,
    /// Ones for its bits, at most [`DIGIT_BITS`], moved to the lowest.
    pub mask: u32,
}

// SAFETY: `repr(C)`, two u32 without padding.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl KernelParam for Digit {}

// The loops over them are unrolled by hand.
const _: () = assert!(PAIRS == 16);

impl Digit {
    #[inline(always)]
    fn of(self, key: u32) -> u32 {
        key >> self.shift & self.mask
    }
}

/// `counts[digit * tiles + tile]`, the number of keys of the tile with this digit. A block takes a
/// tile; a key costs 4 bytes and an atomic addition in shared memory.
///
/// # Safety
///
/// There are `len` keys, and `counts` has room for 256 numbers per tile. The launch is
/// [`launch`]'s.
#[kernel(name = "sort_count_digits")]
pub unsafe fn count_digits(len: u32, keys: Global<u32>, digit: Digit, counts: GlobalMut<u32>) {
    let of_digit = shared_array!(u32; 256);
    let thread = thread::thread_idx_x() as usize;
    let tile = thread::block_idx_x() as usize;
    // SAFETY: keys below `len` are loaded; a digit is below 256. Barriers stand between setting,
    // adding to and reading the counters.
    unsafe {
        of_digit.store(thread, 0);
        thread::sync_threads();
        for load in 0..PAIRS / 4 {
            let first = tile * TILE as usize + (load * BLOCK as usize + thread) * 4;
            if first + 4 <= len as usize {
                for key in keys.load4(first) {
                    of_digit.atomic_add(digit.of(key) as usize, 1);
                }
            } else {
                for at in first..len as usize {
                    of_digit.atomic_add(digit.of(keys.load(at)) as usize, 1);
                }
            }
        }
        thread::sync_threads();
        let tiles = thread::grid_dim_x() as usize;
        counts.store(thread * tiles + tile, of_digit.load(thread));
    }
}

/// Writes each pair to its place in the order of the digits; pairs with the same digit keep their
/// order. A block takes a tile, a warp 512 neighbouring pairs. A pair costs 16 bytes.
///
/// # Safety
///
/// There are `len` pairs, and room for as many sorted ones. `places` has the scanned counts of the
/// same digit, 256 per tile. The launch is [`launch`]'s.
#[kernel(name = "sort_scatter")]
pub unsafe fn scatter(
    len: u32,
    keys: Global<u32>,
    values: Global<u32>,
    digit: Digit,
    places: Global<u32>,
    sorted_keys: GlobalMut<u32>,
    sorted_values: GlobalMut<u32>,
) {
    let counters = shared_array!(u32; 2048);
    let tile_keys = shared_array!(u32; 4096);
    let tile_values = shared_array!(u32; 4096);
    let digit_starts = shared_array!(u32; 256);
    let warp_sums = shared_array!(u32; 8);
    let thread = thread::thread_idx_x();
    let (lane, warp) = (warp::lane_id(), thread / WARP_SIZE);
    let tile = thread::block_idx_x() as usize;
    let first = tile * TILE as usize + (warp * WARP_SIZE) as usize * PAIRS + lane as usize;
    // The lane's pairs are 32 apart; only those before the end exist.
    let left = (len as usize).saturating_sub(first) as u32;
    let is_pair = |i: usize| i as u32 * WARP_SIZE < left;
    let load = |from: Global<u32>, i: usize| {
        if is_pair(i) {
            // SAFETY: `is_pair` says that the position is below `len`.
            unsafe { from.offset(first).load(i * WARP_SIZE as usize) }
        } else {
            0
        }
    };
    let of_warp = counters.offset((warp * DIGITS) as usize);
    // SAFETY: pairs below `len`, digits below 256, positions in the tile below its size. Up to the
    // barrier a counter belongs to one warp; between barriers each word of shared memory belongs to
    // one thread.
    unsafe {
        for i in 0..WARPS {
            counters.store((i * BLOCK + thread) as usize, 0);
        }
        thread::sync_threads();
        let mine: [u32; PAIRS] = core::array::from_fn(|i| load(keys, i));
        let mut ranks = [0; PAIRS];
        unroll!(i in 0..16 {
            let of_key = digit.of(mine[i]);
            // Lanes past the end get a digit of their own.
            let same = warp::match_any(FULL_MASK, if is_pair(i) { of_key } else { DIGITS });
            let leader = same.trailing_zeros();
            let mut before = 0;
            if is_pair(i) && lane == leader {
                before = of_warp.atomic_add(of_key as usize, same.count_ones());
            }
            let before = warp::shfl_idx(FULL_MASK, before, leader, WARP_SIZE);
            ranks[i] = before + (same & ((1 << lane) - 1)).count_ones();
        });
        thread::sync_threads();
        // A thread per digit: where each warp's pairs of this digit start in the tile.
        let mut of_digit = 0;
        for i in 0..WARPS {
            let counter = (i * DIGITS + thread) as usize;
            let count = counters.load(counter);
            counters.store(counter, of_digit);
            of_digit += count;
        }
        let (start, _) = scan_in_block(of_digit, warp_sums, |a, b| a + b, 0);
        for i in 0..WARPS {
            let counter = (i * DIGITS + thread) as usize;
            counters.store(counter, counters.load(counter) + start);
        }
        let tiles = thread::grid_dim_x() as usize;
        let place = places.load(thread as usize * tiles + tile);
        // What to add to a position in the tile for the pair's place among all, modulo 2^32.
        digit_starts.store(thread as usize, place.wrapping_sub(start));
        thread::sync_threads();
        let my_values: [u32; PAIRS] = core::array::from_fn(|i| load(values, i));
        unroll!(i in 0..16 {
            if is_pair(i) {
                let position = (of_warp.load(digit.of(mine[i]) as usize) + ranks[i]) as usize;
                tile_keys.store(position, mine[i]);
                tile_values.store(position, my_values[i]);
            }
        });
        thread::sync_threads();
        let count = (len as usize - tile * TILE as usize).min(TILE as usize) as u32;
        let mut position = thread;
        while position < count {
            let key = tile_keys.load(position as usize);
            let start = digit_starts.load(digit.of(key) as usize);
            let place = start.wrapping_add(position) as usize;
            sorted_keys.store(place, key);
            sorted_values.store(place, tile_values.load(position as usize));
            position += BLOCK;
        }
    }
}
