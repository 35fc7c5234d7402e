//! # 12: An early exit in front of a barrier
//!
//! A block loads its 128 elements into a tile in shared memory, and one more at each side. So each element is loaded
//! from global memory once, and three threads use it:
//!
//! ```text
//! tile      0        1      2     ...   128     129
//!        x[f - 1]  x[f]  x[f + 1] ... x[f+127] x[f+128]      f: the first element of the block
//! ```
//!
//! "If I have no element, I return" is a good first line of a kernel, until the kernel gets a barrier. At
//! `thread::sync_threads()` all threads of the block wait for all others. A GPU may then wait for ever for a thread
//! that has returned, or continue too early.
//!
//! Your task: make the kernel right for every n.
//!
//! The file as delivered passes for 128 and 256. For n = 1 it fails: a thread "has returned from the kernel".

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
    if i >= n {
        return;
    }
    // SAFETY: `i` is less than `n` where `x[i]` and `y[i]` are accessed. Each thread writes its own elements of the
    // tile, and the barrier separates these writes from the reads.
    unsafe {
        tile.store(t + 1, x.load(i));
        if t == 0 {
            tile.store(0, if i > 0 { x.load(i - 1) } else { 0.0 });
        }
        if t == BLOCK - 1 {
            tile.store(BLOCK + 1, if i + 1 < n { x.load(i + 1) } else { 0.0 });
        }
        thread::sync_threads();
        y.store(i, tile.load(t) + tile.load(t + 1) + tile.load(t + 2));
    }
}
