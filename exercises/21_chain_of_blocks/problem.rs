//! # 21: Blocks that wait for each other
//!
//! A scan of many blocks needs the total of all blocks before each one. Here the blocks form a chain: a block waits for
//! the flag of the block before it, adds its own sum to that total, and sets its own flag:
//!
//! ```text
//! block 0    total 5, flag
//! block 1             wait ... total 5 + 7, flag
//! block 2             wait ...                    wait ... total 12 + 1, flag
//! ```
//!
//! But a GPU starts only as many blocks as it has room for, and in any order. If all of them wait for a block that has
//! not started, they wait for ever, because none of them makes room. This is a deadlock. The emulator runs at most
//! 16 blocks at once.
//!
//! Your task: no order of the blocks may lead to a deadlock. `ticket[0]` is 0 at the start,
//! and one thread of each block may add 1 to it.
//!
//! The file as delivered passes as long as blocks start in the order of their indices. In a random order it fails: a
//! thread waits, "but no thread changes anything any more".

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// `totals[b]` = the sum of the elements of `x` up to the end of the `b`-th part of 128 elements.
///
/// # Safety
///
/// `x` holds `n` elements; `totals` and `flags` hold one for each block; `flags` and `ticket[0]` are 0. Blocks have
/// 128 threads.
#[kernel]
pub unsafe fn chain(
    n: u32,
    x: Global<f32>,
    totals: GlobalMut<f32>,
    flags: GlobalMut<u32>,
    ticket: GlobalMut<u32>,
) {
    let sums = shared_array!(f32; 4);
    let t = thread::thread_idx_x() as usize;
    let block = thread::block_idx_x() as usize;
    // SAFETY: `i` is less than `n` where `x` is read, and each block has a number of its own. Barriers order the
    // accesses to shared memory, and the fences around the flags order those to `totals`.
    unsafe {
        let i = block * 128 + t;
        let mut sum = if i < n as usize { x.load(i) } else { 0.0 };
        for step in [16, 8, 4, 2, 1] {
            sum += warp::shfl_xor(FULL_MASK, sum, step, WARP_SIZE);
        }
        if warp::lane_id() == 0 {
            sums.store(t / 32, sum);
        }
        thread::sync_threads();
        if t == 0 {
            let mut total: f32 = (0..4).map(|warp| sums.load(warp)).sum();
            if block > 0 {
                while flags.atomic_load(Scope::Device, block - 1) == 0 {}
                thread::device_fence();
                total += totals.load(block - 1);
            }
            totals.store(block, total);
            thread::device_fence();
            flags.atomic_store(Scope::Device, block, 1);
        }
    }
}
