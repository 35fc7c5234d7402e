//! One barrier separates the loads from the rounds, but nothing separates the rounds.

use cuda_std::prelude::*;

/// Threads of a block.
const BLOCK: usize = 256;

/// `sums[block]` = the sum of the block's 256 elements of `x`; elements from `n` on count as zero.
///
/// # Safety
///
/// `x` holds `n` elements, `sums` holds one for each block. Blocks have 256 threads.
#[kernel]
pub unsafe fn block_sum(n: u32, x: Global<f32>, sums: GlobalMut<f32>) {
    let partial = shared_array!(f32; BLOCK);
    let t = thread::thread_idx_x() as usize;
    let i = thread::index_1d() as usize;
    unsafe {
        partial.store(t, if i < n as usize { x.load(i) } else { 0.0 });
        thread::sync_threads();
        let mut half = BLOCK / 2;
        while half > 0 {
            if t < half {
                partial.store(t, partial.load(t) + partial.load(t + half));
            }
            half /= 2;
        }
        if t == 0 {
            sums.store(thread::block_idx_x() as usize, partial.load(0));
        }
    }
}
