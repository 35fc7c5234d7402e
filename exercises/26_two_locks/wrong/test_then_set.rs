//! The lock is tested and then set, but another warp can find it free between the two.

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
        unsafe {
            while locks.atomic_load(Scope::Device, row) != 0 {}
            locks.atomic_store(Scope::Device, row, 1);
        }
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
        lock(locks, a.min(b));
        lock(locks, a.max(b));
        let (of_a, of_b) = (x.load(32 * a + lane), x.load(32 * b + lane));
        x.store(32 * a + lane, of_b);
        x.store(32 * b + lane, of_a);
        unlock(locks, a);
        unlock(locks, b);
    }
}
