//! The fences order accesses for the threads of the block alone.

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
            thread::block_fence();
            let finished = ticket.atomic_add(Scope::Device, 0, 1) + 1;
            if finished == blocks {
                thread::block_fence();
                let mut sum = 0.0;
                for block in 0..blocks as usize {
                    sum += sums.load(block);
                }
                total.store(0, sum);
            }
        }
    }
}
