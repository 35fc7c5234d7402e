//! A scan in a single pass: tiles look back at the sums of those before them (Merrill and Garland, 2016).
//!
//! Tile t has 256 elements and a *state*, one word of 64 bits that changes twice. The upper half says what the lower
//! half is, so that both change together and no fence is needed.
//!
//! | upper half | lower half |
//! |---|---|
//! | `NOTHING` | nothing yet |
//! | `TILE_SUM` | the sum of the tile |
//! | `UP_TO_TILE` | the sum of all elements up to the end of the tile |

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads of a block, and elements of a tile.
pub const TILE: u32 = 256;

/// Warps of a block.
const WARPS: usize = (TILE / WARP_SIZE) as usize;

const NOTHING: u32 = 0;
const TILE_SUM: u32 = 1;
const UP_TO_TILE: u32 = 2;

/// `y[i] = x[0] + .. + x[i]`, modulo 2^32, a block for each tile. With `TICKETS` = 0 a block takes the tile of its own
/// index, which is wrong: it may wait for a tile whose block has not started.
///
/// # Safety
///
/// `x` and `y` hold `n` elements, `states` holds a zero for each tile, `tickets[0]` is 0. Blocks have 256 threads.
/// `TICKETS` is 1.
#[kernel(TICKETS = [0, 1])]
pub unsafe fn scan<const TICKETS: u32>(
    n: u32,
    x: Global<u32>,
    y: GlobalMut<u32>,
    states: GlobalMut<u64>,
    tickets: GlobalMut<u32>,
) {
    let warp_sums = shared_array!(u32; WARPS);
    let from_first = shared_array!(u32; 2);
    let t = thread::thread_idx_x() as usize;
    // SAFETY: elements are accessed only if they exist. Thread 0 writes `from_first`, and barriers separate each write
    // from the reads. States and tickets are accessed by atomic operations alone.
    unsafe {
        if t == 0 {
            let own = thread::block_idx_x();
            from_first.store(
                0,
                if TICKETS == 1 {
                    tickets.atomic_add(Scope::Device, 0, 1)
                } else {
                    own
                },
            );
        }
        thread::sync_threads();
        let tile = from_first.load(0) as usize;
        let i = tile * TILE as usize + t;
        let element = if i < n as usize { x.load(i) } else { 0 };
        let (within, tile_sum) = scan_block(element, warp_sums);
        if t == 0 {
            states.atomic_store(Scope::Device, tile, state(TILE_SUM, tile_sum));
            let before = look_back(tile, states);
            states.atomic_store(
                Scope::Device,
                tile,
                state(UP_TO_TILE, before.wrapping_add(tile_sum)),
            );
            from_first.store(1, before);
        }
        thread::sync_threads();
        if i < n as usize {
            y.store(i, from_first.load(1).wrapping_add(within));
        }
    }
}

/// The sum of all elements before a tile: adds the sums of the tiles before it, the last one first, until one of them
/// knows the sum up to its end.
///
/// # Safety
///
/// There is a state for each tile up to this one, and each of these tiles has a block that runs.
#[inline(always)]
unsafe fn look_back(tile: usize, states: GlobalMut<u64>) -> u32 {
    let mut before = 0_u32;
    let mut other = tile;
    while other > 0 {
        // SAFETY: `other - 1` is a tile.
        let state = unsafe { states.atomic_load(Scope::Device, other - 1) };
        let (kind, sum) = ((state >> 32) as u32, state as u32);
        if kind == NOTHING {
            continue;
        }
        before = before.wrapping_add(sum);
        if kind == UP_TO_TILE {
            break;
        }
        other -= 1;
    }
    before
}

/// The state of a tile.
#[inline(always)]
fn state(kind: u32, sum: u32) -> u64 {
    u64::from(kind) << 32 | u64::from(sum)
}

/// The sum over the lanes up to and including this one. All lanes of the warp call it.
#[inline(always)]
pub fn scan_warp(value: u32) -> u32 {
    let mut sum = value;
    for distance in [1, 2, 4, 8, 16] {
        let other = warp::shfl_up(FULL_MASK, sum, distance, WARP_SIZE);
        if warp::lane_id() >= distance {
            sum = sum.wrapping_add(other);
        }
    }
    sum
}

/// The sum over the threads of the block up to and including this one, and over all of them.
///
/// # Safety
///
/// All threads of the block call it. `warp_sums` has an element for each warp, and nobody else uses it.
#[inline(always)]
unsafe fn scan_block(value: u32, warp_sums: Shared<u32>) -> (u32, u32) {
    let up_to = scan_warp(value);
    let lane = warp::lane_id();
    let own_warp = thread::thread_idx_x() / WARP_SIZE;
    // SAFETY: the last lane of each warp writes one sum, and the barrier separates these writes from the reads.
    unsafe {
        if lane == WARP_SIZE - 1 {
            warp_sums.store(own_warp as usize, up_to);
        }
        thread::sync_threads();
        let sum = if (lane as usize) < WARPS {
            warp_sums.load(lane as usize)
        } else {
            0
        };
        let up_to_warp = scan_warp(sum);
        let total = warp::shfl_idx(FULL_MASK, up_to_warp, WARP_SIZE - 1, WARP_SIZE);
        let before = warp::shfl_idx(FULL_MASK, up_to_warp.wrapping_sub(sum), own_warp, WARP_SIZE);
        (before.wrapping_add(up_to), total)
    }
}
