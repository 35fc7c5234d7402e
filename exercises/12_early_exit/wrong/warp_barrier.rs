//! The barrier is that of a warp, but the first and the last lane read elements of other warps.

use cuda_std::prelude::*;

/// Threads of a block.
const BLOCK: usize = 128;

/// `y[i] = x[i - 1] + x[i] + x[i + 1]`, where elements outside of `x` count as zero.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each. Blocks have 128 threads.
#[kernel]
pub unsafe fn add_neighbours(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let tile = shared_array!(f32; BLOCK + 2);
    let n = n as usize;
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    // SAFETY: `i` is less than `n` where `x[i]` and `y[i]` are accessed. Each thread writes its own elements of the
    // tile, and the barrier separates these writes from the reads.
    unsafe {
        tile.store(t + 1, if i < n { x.load(i) } else { 0.0 });
        if t == 0 {
            tile.store(0, if i > 0 { x.load(i - 1) } else { 0.0 });
        }
        if t == BLOCK - 1 {
            tile.store(BLOCK + 1, if i + 1 < n { x.load(i + 1) } else { 0.0 });
        }
        warp::sync_warp(warp::FULL_MASK);
        if i < n {
            y.store(i, tile.load(t) + tile.load(t + 1) + tile.load(t + 2));
        }
    }
}
