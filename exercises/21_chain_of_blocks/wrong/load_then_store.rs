//! The ticket is loaded atomically and stored atomically, but another block can draw the same one between the two.

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
    let place = shared_array!(u32; 1);
    // SAFETY: `i` is less than `n` where `x` is read, and each block has a number of its own. Barriers order the
    // accesses to shared memory, and the fences around the flags order those to `totals`.
    unsafe {
        if t == 0 {
            let own = ticket.atomic_load(Scope::Device, 0);
            ticket.atomic_store(Scope::Device, 0, own + 1);
            place.store(0, own);
        }
        thread::sync_threads();
        let block = place.load(0) as usize;
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
