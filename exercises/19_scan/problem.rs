//! # 19: A scan
//!
//! A scan computes all partial sums: element i of the result is the sum of the elements up to i. With it, threads find
//! out where their output starts when each of them writes a different number of elements. A block of 256 threads needs
//! 8 rounds (Hillis and Steele, 1986):
//!
//! ```text
//!           0    1    2    3    4    5
//! step 1    0   0-1  1-2  2-3  3-4  4-5       add the element 1 to the left
//! step 2    0   0-1  0-2  0-3  1-4  2-5       add the element 2 to the left
//! step 4    0   0-1  0-2  0-3  0-4  0-5       add the element 4 to the left
//! ```
//!
//! In each round a thread reads the element of another thread, and that thread overwrites it in the same round.
//!
//! Your task: put the barriers where they are needed, and do what else is needed for that.
//!
//! The file as delivered has one barrier for each round. It fails with "race on shared memory".

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
    // SAFETY: `i` is less than `n` where `x` and `y` are accessed. But what orders the accesses to `sums` in a round?
    unsafe {
        sums.store(t, if i < n as usize { x.load(i) } else { 0.0 });
        thread::sync_threads();
        let mut step = 1;
        while step < BLOCK {
            if t >= step {
                sums.store(t, sums.load(t) + sums.load(t - step));
            }
            thread::sync_threads();
            step *= 2;
        }
        if i < n as usize {
            y.store(i, sums.load(t));
        }
    }
}
