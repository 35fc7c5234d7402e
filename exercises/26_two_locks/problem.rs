//! # 26: Two locks
//!
//! A warp swaps two rows of a matrix. Other warps may want the same rows, so each row has a lock: a word that is 0 if
//! the lock is free. A warp takes both locks, swaps, and releases both:
//!
//! ```text
//! warp 0 swaps rows 1 and 2    lock 1 taken                 waits for lock 2 ...
//! warp 1 swaps rows 2 and 1            lock 2 taken         waits for lock 1 ...
//! ```
//!
//! Now both wait for ever: a deadlock. It happens rarely, so a kernel can run well for months.
//!
//! Lane 0 takes the lock for its warp, and the other lanes wait at the barrier of the warp. Do not let each lane take a
//! lock. The lanes of a warp may execute only together: then the lane that waits stops the lane that holds the lock.
//! Fences make the data of the last owner visible to the next one, as in exercise 14.
//!
//! Your task: make a deadlock impossible. Swaps of different rows must still run at the same time, so one lock for all
//! rows is no solution, although the check cannot tell.
//!
//! The file as delivered fails: a thread waits for a lock, "but no thread changes anything any more".

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// Waits until the lock of `row` is free, and takes it for the warp.
///
/// # Safety
///
/// `locks` has an element `row`. All lanes of the warp call it with the same row.
unsafe fn lock(locks: GlobalMut<u32>, row: usize) {
    if warp::lane_id() == 0 {
        // SAFETY: `locks` has an element `row`.
        unsafe { while locks.atomic_compare_exchange(Scope::Device, row, 0, 1) != 0 {} }
        thread::device_fence();
    }
    warp::sync_warp(FULL_MASK);
}

/// Releases the lock of `row`.
///
/// # Safety
///
/// The warp holds the lock. All its lanes call it with the same row.
unsafe fn unlock(locks: GlobalMut<u32>, row: usize) {
    warp::sync_warp(FULL_MASK);
    if warp::lane_id() == 0 {
        thread::device_fence();
        // SAFETY: `locks` has an element `row`.
        unsafe { locks.atomic_store(Scope::Device, row, 0) };
    }
}

/// Swaps the rows `from[k]` and `to[k]` of `x`, one warp for each `k`.
///
/// # Safety
///
/// `from` and `to` hold `n` rows each, and `from[k]` is not `to[k]`. `x` has 32 elements in each row, and `locks` has a
/// zero for each row. Blocks have whole warps.
#[kernel]
pub unsafe fn swap_rows(
    n: u32,
    from: Global<u32>,
    to: Global<u32>,
    locks: GlobalMut<u32>,
    x: GlobalMut<u32>,
) {
    let k = (thread::index_1d() / 32) as usize;
    if k >= n as usize {
        return;
    }
    let lane = warp::lane_id() as usize;
    // SAFETY: `k` is less than `n`. The warp accesses two rows while it holds their locks.
    unsafe {
        let (a, b) = (from.load(k) as usize, to.load(k) as usize);
        lock(locks, a);
        lock(locks, b);
        let (of_a, of_b) = (x.load(32 * a + lane), x.load(32 * b + lane));
        x.store(32 * a + lane, of_b);
        x.store(32 * b + lane, of_a);
        unlock(locks, a);
        unlock(locks, b);
    }
}
