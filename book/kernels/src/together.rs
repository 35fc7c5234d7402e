//! Threads that work together: through shared memory, through registers, through global memory.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads of a block of [`reverse`], and elements that it reverses.
pub const BLOCK: u32 = 128;

/// Reverses each group of 128 elements, a block for each group. Without `BARRIER` it is wrong.
///
/// # Safety
///
/// `data` holds 128 elements for each block; blocks have 128 threads. `BARRIER` is 1.
#[kernel(BARRIER = [0, 1])]
pub unsafe fn reverse<const BARRIER: u32>(data: GlobalMut<f32>) {
    let tile = shared_array!(f32; BLOCK as usize);
    let t = thread::thread_idx_x() as usize;
    let i = thread::index_1d() as usize;
    // SAFETY: each thread writes its own element of the tile and of `data`. The barrier separates the writes of the
    // tile from the reads.
    unsafe {
        tile.store(t, data.load(i));
        if BARRIER == 1 {
            thread::sync_threads();
        }
        data.store(i, tile.load(BLOCK as usize - 1 - t));
    }
}

/// `y[i] = x[i] - x[i - 1]`, and `y[0] = x[0]`. A lane gets its neighbour's element by a shuffle; only the first lane
/// of a warp loads two elements.
///
/// # Safety
///
/// `x` and `y` hold `n` elements. Blocks have a multiple of 32 threads.
#[kernel]
pub unsafe fn differences(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let (n, i) = (n as usize, thread::index_1d() as usize);
    // SAFETY: elements are accessed only if they exist. All lanes reach the shuffle.
    unsafe {
        let own = if i < n { x.load(i) } else { 0.0 };
        let mut before = warp::shfl_up(FULL_MASK, own, 1, WARP_SIZE);
        if warp::lane_id() == 0 {
            before = if i > 0 && i < n { x.load(i - 1) } else { 0.0 };
        }
        if i < n {
            y.store(i, own - before);
        }
    }
}

/// Copies the elements of `x` that are not negative to `kept`, in any order, and counts them in `count[0]`. Each of
/// them takes a number from the counter.
///
/// # Safety
///
/// `x` and `kept` hold `n` elements, `count` holds one.
#[kernel]
pub unsafe fn keep_by_threads(n: u32, x: Global<f32>, kept: GlobalMut<f32>, count: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is less than `n`, and each of at most `n` elements gets a number of its own.
        unsafe {
            let element = x.load(i);
            if element >= 0.0 {
                let place = count.atomic_add(Scope::Device, 0, 1);
                kept.store(place as usize, element);
            }
        }
    }
}

/// [`keep_by_threads`] with one atomic addition for each warp: a vote tells each lane how many lanes before it keep
/// their elements.
///
/// # Safety
///
/// As for [`keep_by_threads`]. Blocks have a multiple of 32 threads.
#[kernel]
pub unsafe fn keep_by_warps(n: u32, x: Global<f32>, kept: GlobalMut<f32>, count: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    let lane = warp::lane_id();
    // SAFETY: elements are read only if they exist. All lanes reach vote and shuffle. The warp takes as many numbers as
    // it keeps elements.
    unsafe {
        let element = if i < n as usize { x.load(i) } else { -1.0 };
        let keepers = warp::ballot(FULL_MASK, element >= 0.0);
        let mut first = 0;
        if lane == 0 {
            first = count.atomic_add(Scope::Device, 0, keepers.count_ones());
        }
        first = warp::shfl_idx(FULL_MASK, first, 0, WARP_SIZE);
        let before = (keepers & ((1 << lane) - 1)).count_ones();
        if element >= 0.0 {
            kept.store((first + before) as usize, element);
        }
    }
}

/// Block 0 writes a number and raises a flag; block 1 waits for the flag and reads the number. Without `FENCES` it is
/// wrong.
///
/// # Safety
///
/// The arrays hold one element each, and `flag[0]` is 0. There are two blocks of one thread. `FENCES` is 1.
#[kernel(FENCES = [0, 1])]
pub unsafe fn pass_message<const FENCES: u32>(
    number: GlobalMut<u32>,
    flag: GlobalMut<u32>,
    received: GlobalMut<u32>,
) {
    // SAFETY: the flag is raised after the number is written, and seen before it is read, with a fence on each side.
    unsafe {
        if thread::block_idx_x() == 0 {
            number.store(0, 42);
            if FENCES == 1 {
                thread::device_fence();
            }
            flag.atomic_store(Scope::Device, 0, 1);
        } else {
            while flag.atomic_load(Scope::Device, 0) == 0 {}
            if FENCES == 1 {
                thread::device_fence();
            }
            received.store(0, number.load(0));
        }
    }
}
