//! Warps count on their own and add all bins, so each block adds eight times 16 bins.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// Number of bins.
const BINS: usize = 16;

/// `counts[k]` += the number of elements of `x` that are `k`, by a grid of any size.
///
/// # Safety
///
/// `x` holds `n` numbers less than 16, `counts` holds 16. Blocks have at least 16 threads.
#[kernel]
pub unsafe fn histogram(n: u32, x: Global<u32>, counts: GlobalMut<u32>) {
    let threads = thread::grid_dim_x() as usize * thread::block_dim_x() as usize;
    let bins = shared_array!(u32; 128);
    let (t, lane) = (thread::thread_idx_x() as usize, warp::lane_id() as usize);
    let bins = bins.offset(t / 32 * BINS);
    unsafe {
        if lane < BINS {
            bins.store(lane, 0);
        }
        warp::sync_warp(warp::FULL_MASK);
        let mut i = thread::index_1d() as usize;
        while i < n as usize {
            bins.atomic_add(x.load(i) as usize, 1);
            i += threads;
        }
        warp::sync_warp(warp::FULL_MASK);
        if lane < BINS {
            counts.reduce_add(Scope::Device, lane, bins.load(lane));
        }
    }
}
