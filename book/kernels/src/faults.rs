//! Kernels that are wrong on purpose: one for each kind of fault that the emulator names.

use cuda_std::async_copy;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads of a block of these kernels, and elements of `x` and `y`.
pub const BLOCK: u32 = 64;

/// Reads what nobody has written: `y[i] += x[i]` without zeros in `y`.
///
/// # Safety
///
/// No call is safe. Blocks have 64 threads; `x` and `y` have 64 elements.
#[kernel]
pub unsafe fn add_to_nothing(x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    // SAFETY: the elements exist, but those of `y` are not written.
    unsafe { y.store(i, y.load(i) + x.load(i)) };
}

/// A race: all threads add to one element without an atomic operation.
///
/// # Safety
///
/// As for [`add_to_nothing`].
#[kernel]
pub unsafe fn add_without_atomics(x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    // SAFETY: broken on purpose: all threads write element 0.
    unsafe {
        if i == 0 {
            y.store(0, 0.0);
        }
        thread::sync_threads();
        y.store(0, y.load(0) + x.load(i));
    }
}

/// A barrier that the second warp does not reach.
///
/// # Safety
///
/// As for [`add_to_nothing`].
#[kernel]
pub unsafe fn barrier_for_some(x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    // SAFETY: the elements exist.
    unsafe { y.store(i, x.load(i)) };
    if i < 32 {
        thread::sync_threads();
    }
}

/// A shuffle of all lanes that only half of them reach.
///
/// # Safety
///
/// As for [`add_to_nothing`].
#[kernel]
pub unsafe fn shuffle_for_some(x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    // SAFETY: the elements exist; the mask is broken on purpose.
    unsafe {
        let mut sum = x.load(i);
        if warp::lane_id() < 16 {
            sum += warp::shfl_xor(FULL_MASK, sum, 8, WARP_SIZE);
        }
        y.store(i, sum);
    }
}

/// A load of 16 bytes from an address that is no multiple of 16.
///
/// # Safety
///
/// As for [`add_to_nothing`].
#[kernel]
pub unsafe fn unaligned_load(x: Global<f32>, y: GlobalMut<f32>) {
    let i = 4 * (thread::index_1d() as usize % 8);
    // SAFETY: the elements exist, but four elements from 1 on are not aligned.
    unsafe { y.store4(i, x.load4(i + 1)) };
}

/// A read of shared memory while an asynchronous copy to it is in flight.
///
/// # Safety
///
/// As for [`add_to_nothing`].
#[kernel]
pub unsafe fn copy_without_wait(x: Global<f32>, y: GlobalMut<f32>) {
    let tile = shared_array!(f32; BLOCK as usize);
    let i = thread::index_1d() as usize;
    // SAFETY: the elements exist; the wait is missing on purpose.
    unsafe {
        async_copy::copy::<f32, 1>(tile.offset(i), x.offset(i));
        async_copy::commit();
        y.store(i, tile.load(i));
    }
}

/// Waits for a flag that nobody sets.
///
/// # Safety
///
/// As for [`add_to_nothing`].
#[kernel]
pub unsafe fn wait_for_nobody(x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    let flags = y.cast::<u32>();
    // SAFETY: the elements exist.
    unsafe {
        flags.atomic_store(Scope::Device, i, 0);
        while flags.atomic_load(Scope::Device, 0) == 0 {}
        y.store(i, x.load(i));
    }
}
