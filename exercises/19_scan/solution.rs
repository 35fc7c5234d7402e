//! All threads read, wait, store, and wait again.

use cuda_std::prelude::*;

/// Threads of a block.
const BLOCK: usize = 256;

/// The partial sums of each block's 256 elements; elements from `n` on count as zero.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each. Blocks have 256 threads.
#[kernel]
pub unsafe fn scan(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let sums = shared_array!(f32; BLOCK);
    let t = thread::thread_idx_x() as usize;
    let i = thread::index_1d() as usize;
    // SAFETY: `i` is less than `n` where `x` and `y` are accessed. In each round, one barrier separates the reads from
    // the writes, and one separates these writes from the reads of the next round.
    unsafe {
        sums.store(t, if i < n as usize { x.load(i) } else { 0.0 });
        thread::sync_threads();
        let mut step = 1;
        while step < BLOCK {
            let below = if t >= step { sums.load(t - step) } else { 0.0 };
            thread::sync_threads();
            sums.store(t, sums.load(t) + below);
            thread::sync_threads();
            step *= 2;
        }
        if i < n as usize {
            y.store(i, sums.load(t));
        }
    }
}
