//! # 14: The last block adds up
//!
//! In exercise 08 blocks add to one number by atomic operations, so the order of the additions changes from run to run.
//! Here each block stores its sum and takes a ticket, which counts the blocks that have finished. The block with the
//! last ticket adds up all sums, always in the same order:
//!
//! ```text
//! block 0    sums[0] = 5    ticket 0 -> 1
//! block 1      sums[1] = 7    ticket 1 -> 2    I am the last: total = sums[0] + sums[1]
//! ```
//!
//! Does the last block see all sums? The ticket is atomic, but it does not order other accesses. On a GPU the new value
//! of `sums[0]` may arrive after that of the ticket. A fence keeps the accesses before it and those after it in order
//! (`thread::device_fence()`). A hand-off needs two: the writer needs one between data and flag, and the reader needs
//! one between flag and data.
//!
//! Your task: make sure that the last block sees all sums.
//!
//! The file as delivered fails with "race on global memory".

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// `total[0]` = the sum of `x`. The block that finishes last adds up the sums of all blocks.
///
/// # Safety
///
/// `x` holds `n` elements, `sums` one for each block, `total` one, and `ticket[0]` is 0. Blocks have 128 threads.
#[kernel]
pub unsafe fn last_block_adds(
    n: u32,
    x: Global<f32>,
    sums: GlobalMut<f32>,
    ticket: GlobalMut<u32>,
    total: GlobalMut<f32>,
) {
    let of_warps = shared_array!(f32; 4);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    let (block, blocks) = (thread::block_idx_x() as usize, thread::grid_dim_x());
    // SAFETY: `i` is less than `n` where `x` is read. Each warp writes one sum of four, and a barrier separates these
    // writes from the reads. But what orders the writes of `sums` and the reads of the last block?
    unsafe {
        let mut sum = if i < n as usize { x.load(i) } else { 0.0 };
        for step in [16, 8, 4, 2, 1] {
            sum += warp::shfl_xor(FULL_MASK, sum, step, WARP_SIZE);
        }
        if warp::lane_id() == 0 {
            of_warps.store(t / 32, sum);
        }
        thread::sync_threads();
        if t == 0 {
            let sum = (0..4).map(|warp| of_warps.load(warp)).sum();
            sums.store(block, sum);
            let finished = ticket.atomic_add(Scope::Device, 0, 1) + 1;
            if finished == blocks {
                let mut sum = 0.0;
                for block in 0..blocks as usize {
                    sum += sums.load(block);
                }
                total.store(0, sum);
            }
        }
    }
}
