//! # 05: A block adds up its elements
//!
//! The threads of a block add 256 numbers in 8 rounds. In each round, half as many threads add two numbers each:
//!
//! ```text
//! partial   0   1   2   3   4   5   6   7
//! half = 4  0+4 1+5 2+6 3+7
//! half = 2  0+2 1+3
//! half = 1  0+1
//! ```
//!
//! The numbers lie in shared memory, because threads read what other threads have written. But a block has many warps,
//! and each runs at its own pace. A thread sees the writes of another one only after a barrier: at
//! `thread::sync_threads()` all threads of the block wait until all have arrived.
//!
//! Your task: put barriers where they are needed. All threads of the block must reach each barrier.
//!
//! The file as delivered fails with "race on shared memory". The message names the lines of both accesses.

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
    // SAFETY: `i` is less than `n` where `x` is read. But what orders the accesses to `partial`?
    unsafe {
        partial.store(t, if i < n as usize { x.load(i) } else { 0.0 });
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
