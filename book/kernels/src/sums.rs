//! Sums of many elements: by atomic additions of threads, of warps and of blocks.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// Warps of a block.
const WARPS: usize = (BLOCK / WARP_SIZE) as usize;

/// `total[0] += x[0] + .. + x[n - 1]`, modulo 2^32. Each thread adds one element to the total.
///
/// # Safety
///
/// `x` holds `n` elements, `total` holds one.
#[kernel]
pub unsafe fn sum_by_threads(n: u32, x: Global<u32>, total: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is less than `n`. The total is changed by atomic operations alone.
        unsafe { total.reduce_add(Scope::Device, 0, x.load(i)) };
    }
}

/// The sum of `value` over the lanes of a warp, in all lanes. All lanes call it.
#[inline(always)]
pub fn warp_sum(value: u32) -> u32 {
    let mut sum = value;
    for distance in [16, 8, 4, 2, 1] {
        sum = sum.wrapping_add(warp::shfl_xor(FULL_MASK, sum, distance, WARP_SIZE));
    }
    sum
}

/// [`sum_by_threads`] with one atomic addition for each warp.
///
/// # Safety
///
/// As for [`sum_by_threads`]. Blocks have a multiple of 32 threads.
#[kernel]
pub unsafe fn sum_by_warps(n: u32, x: Global<u32>, total: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    // SAFETY: elements are read only if they exist. The total is changed by atomic operations alone.
    unsafe {
        let sum = warp_sum(if i < n as usize { x.load(i) } else { 0 });
        if warp::lane_id() == 0 {
            total.reduce_add(Scope::Device, 0, sum);
        }
    }
}

/// [`sum_by_threads`] with one atomic addition for each block, by a grid of any size: thread t adds elements t,
/// t + threads of the grid, .. in a register first.
///
/// # Safety
///
/// As for [`sum_by_threads`]. Blocks have 256 threads.
#[kernel]
pub unsafe fn sum_by_blocks(n: u32, x: Global<u32>, total: GlobalMut<u32>) {
    let sums = shared_array!(u32; WARPS);
    let t = thread::thread_idx_x();
    let threads = thread::grid_dim_x() as usize * thread::block_dim_x() as usize;
    // SAFETY: elements are read only if they exist. Each warp writes one sum, and the barrier separates these writes
    // from the reads. The total is changed by atomic operations alone.
    unsafe {
        let mut sum = 0_u32;
        let mut i = thread::index_1d() as usize;
        while i < n as usize {
            sum = sum.wrapping_add(x.load(i));
            i += threads;
        }
        let sum = warp_sum(sum);
        if warp::lane_id() == 0 {
            sums.store((t / WARP_SIZE) as usize, sum);
        }
        thread::sync_threads();
        if t < WARP_SIZE {
            let sum = warp_sum(if (t as usize) < WARPS {
                sums.load(t as usize)
            } else {
                0
            });
            if t == 0 {
                total.reduce_add(Scope::Device, 0, sum);
            }
        }
    }
}
