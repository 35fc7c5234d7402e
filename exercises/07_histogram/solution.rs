//! Each block counts in shared memory and adds its bins to the global ones.

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
    let bins = shared_array!(u32; BINS);
    let t = thread::thread_idx_x() as usize;
    let threads = thread::grid_dim_x() as usize * thread::block_dim_x() as usize;
    // SAFETY: `t` is less than 16 where it is a bin, and elements of `x` are. Barriers separate the zeros, the atomic
    // operations on the bins and the loads of the bins.
    unsafe {
        if t < BINS {
            bins.store(t, 0);
        }
        thread::sync_threads();
        let mut i = thread::index_1d() as usize;
        while i < n as usize {
            bins.atomic_add(x.load(i) as usize, 1);
            i += threads;
        }
        thread::sync_threads();
        if t < BINS {
            counts.reduce_add(Scope::Device, t, bins.load(t));
        }
    }
}
