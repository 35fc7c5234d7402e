//! Both branches have a barrier, but these are two barriers. Each waits for all threads.

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
    unsafe {
        if i < n {
            tile.store(t + 1, x.load(i));
            if t == 0 {
                tile.store(0, if i > 0 { x.load(i - 1) } else { 0.0 });
            }
            if t == BLOCK - 1 {
                tile.store(BLOCK + 1, if i + 1 < n { x.load(i + 1) } else { 0.0 });
            }
            thread::sync_threads();
            y.store(i, tile.load(t) + tile.load(t + 1) + tile.load(t + 2));
        } else {
            tile.store(t + 1, 0.0);
            if t == 0 {
                tile.store(0, if i > 0 { x.load(i - 1) } else { 0.0 });
            }
            if t == BLOCK - 1 {
                tile.store(BLOCK + 1, 0.0);
            }
            thread::sync_threads();
        }
    }
}
