//! Kernels for `cuda_std::thread`: indices, barriers and fences.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// How many numbers [`indices`] writes per thread.
pub const INDICES: usize = 14;

/// The number of the block in its grid and of the thread in its block, with x varying fastest.
fn linear() -> (u64, u64) {
    let block = (u64::from(thread::block_idx_z()) * u64::from(thread::grid_dim_y())
        + u64::from(thread::block_idx_y()))
        * u64::from(thread::grid_dim_x())
        + u64::from(thread::block_idx_x());
    let lane = (u64::from(thread::thread_idx_z()) * u64::from(thread::block_dim_y())
        + u64::from(thread::thread_idx_y()))
        * u64::from(thread::block_dim_x())
        + u64::from(thread::thread_idx_x());
    (block, lane)
}

/// Each thread writes its indices, the dimensions, its lane and `index_1d`.
///
/// # Safety
///
/// `out` has [`INDICES`] elements per thread.
#[kernel]
pub unsafe fn indices(out: GlobalMut<u32>) {
    let (block, lane) = linear();
    let threads = u64::from(thread::block_dim_x() * thread::block_dim_y() * thread::block_dim_z());
    let out = out.offset((block * threads + lane) as usize * INDICES);
    let values: [u32; INDICES] = [
        thread::thread_idx_x(),
        thread::thread_idx_y(),
        thread::thread_idx_z(),
        thread::block_idx_x(),
        thread::block_idx_y(),
        thread::block_idx_z(),
        thread::block_dim_x(),
        thread::block_dim_y(),
        thread::block_dim_z(),
        thread::grid_dim_x(),
        thread::grid_dim_y(),
        thread::grid_dim_z(),
        warp::lane_id(),
        thread::index_1d() as u32,
    ];
    for (i, value) in values.into_iter().enumerate() {
        // SAFETY: each thread accesses its own elements only, which exist by the contract.
        unsafe { out.store(i, value) };
    }
}

/// Each thread writes the results of `sync_threads_count`, `_and` and `_or` for `flags[thread] !=
/// 0`.
///
/// # Safety
///
/// `flags` has an element per thread, `out` three.
#[kernel]
pub unsafe fn barrier_votes(flags: Global<u32>, out: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    // SAFETY: each thread accesses its own elements only, which exist by the contract.
    unsafe {
        let flag = flags.load(i) != 0;
        out.store(3 * i, thread::sync_threads_count(flag));
        out.store(3 * i + 1, u32::from(thread::sync_threads_and(flag)));
        out.store(3 * i + 2, u32::from(thread::sync_threads_or(flag)));
    }
}

/// Each block sums its part of `input`. The block that finishes last adds up the parts in order:
/// `total[0]`.
///
/// The parts pass from block to block through a fence and an atomic ticket. `SCOPE` is 1 for a
/// device fence, 2 for a system fence.
///
/// # Safety
///
/// `input` has an element per thread, `parts` one per block, and `ticket[0]` is 0.
#[kernel(SCOPE = [1, 2])]
pub unsafe fn last_block_sums<const SCOPE: u32>(
    input: Global<u32>,
    parts: GlobalMut<u32>,
    ticket: GlobalMut<u32>,
    total: GlobalMut<u32>,
) {
    let fence = || {
        if SCOPE == 1 {
            thread::device_fence();
        } else {
            thread::system_fence();
        }
    };
    let sum = shared_array!(u32; 1);
    let first = thread::thread_idx_x() == 0;
    // SAFETY: indices are within the lengths, by the contract. Writes are ordered by barriers
    // within a block, and by the fences around the ticket between blocks.
    unsafe {
        if first {
            sum.store(0, 0);
        }
        thread::sync_threads();
        sum.atomic_add(0, input.load(thread::index_1d() as usize));
        thread::sync_threads();
        if !first {
            return;
        }
        parts.store(thread::block_idx_x() as usize, sum.load(0));
        fence();
        let finished = ticket.atomic_add(Scope::Device, 0, 1) + 1;
        if finished == thread::grid_dim_x() {
            fence();
            let mut all = 0;
            for block in 0..thread::grid_dim_x() as usize {
                all += parts.atomic_load(Scope::Device, block);
            }
            total.store(0, all);
        }
    }
}

/// A warp of each block passes numbers to the other one through shared memory, with `block_fence`
/// and a flag but no barrier.
///
/// # Safety
///
/// Blocks have 64 threads; `out` has 32 elements per block.
#[kernel]
pub unsafe fn pass_on(out: GlobalMut<u32>) {
    let numbers = shared_array!(u32; 32);
    let flag = shared_array!(u32; 1);
    let lane = warp::lane_id() as usize;
    let writer = thread::thread_idx_x() < 32;
    // SAFETY: the flag is set after the numbers are written, and read before they are read; a fence
    // stands in between.
    unsafe {
        if writer {
            numbers.store(lane, u32::MAX);
        }
        if thread::thread_idx_x() == 0 {
            flag.store(0, 0);
        }
        thread::sync_threads();
        if writer {
            numbers.atomic_exchange(lane, thread::block_idx_x() + lane as u32);
            thread::block_fence();
            warp::sync_warp(warp::FULL_MASK);
            if lane == 0 {
                flag.atomic_exchange(0, 1);
            }
        } else {
            while flag.atomic_add(0, 0) == 0 {}
            thread::block_fence();
            let number = numbers.atomic_add(lane, 0);
            out.store(thread::block_idx_x() as usize * 32 + lane, number);
        }
    }
}
