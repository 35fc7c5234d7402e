//! Nobody sets the bins to zero: shared memory has no content at the start.

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
    unsafe {
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
