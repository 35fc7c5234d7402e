//! Asynchronous copies from global to shared memory (`cp.async`).
//!
//! A thread starts copies, closes a group of them with [`commit`], and waits for all groups except the last few with
//! [`wait`]. The data need no registers, so many copies can be in flight while the thread computes. A thread waits only
//! for its own copies; a barrier after the wait makes them visible to other threads.

use crate::backend;
use crate::element::Element;
use crate::memory::{Global, Shared};

/// Starts a copy of `N` elements, 4, 8 or 16 bytes in total. A copy of 16 bytes bypasses the L1 cache.
///
/// ```
/// use cuda_std::prelude::*;
/// use cuda_std::async_copy;
///
/// /// Reverses the 64 elements of each block.
/// ///
/// /// # Safety
/// ///
/// /// `input` and `output` hold 64 elements for each block; blocks have 64 threads.
/// #[kernel(T = [f32])]
/// pub unsafe fn reverse<T: Element>(input: Global<T>, output: GlobalMut<T>) {
///     let tile = shared_array!(T; 64);
///     let (lane, base) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize * 64);
///     // SAFETY: a thread copies and writes its own element, and reads another thread's only after the barrier.
///     unsafe {
///         async_copy::copy::<T, 1>(tile.offset(lane), input.offset(base + lane));
///         async_copy::commit();
///         async_copy::wait::<0>();
///         thread::sync_threads();
///         output.store(base + lane, tile.load(63 - lane));
///     }
/// }
/// ```
///
/// # Safety
///
/// - The source lies in one allocation, the destination in the block's shared memory. Both addresses are multiples of
///   the size of the copy.
/// - No thread writes the source during the launch.
/// - No thread accesses the destination until this thread has waited for the copy.
#[inline(always)]
#[track_caller]
pub unsafe fn copy<T: Element, const N: usize>(to: Shared<T>, from: Global<T>) {
    const {
        assert!(
            matches!(N * size_of::<T>(), 4 | 8 | 16),
            "a copy is of 4, 8 or 16 bytes"
        )
    };
    // SAFETY: the caller guarantees valid, aligned addresses and no conflicting access.
    unsafe {
        backend::copy_async(
            to.address(),
            from.address(),
            const { (N * size_of::<T>()) as u32 },
        )
    }
}

/// Does [`copy`] if `present` is true. Otherwise it writes as many zeros and reads nothing.
///
/// # Safety
///
/// As for [`copy`]. If `present` is false, the source may be any address.
#[inline(always)]
#[track_caller]
pub unsafe fn copy_or_zeros<T: Element, const N: usize>(
    to: Shared<T>,
    from: Global<T>,
    present: bool,
) {
    let bytes = const { (N * size_of::<T>()) as u32 };
    // SAFETY: the contract is that of `copy_part`; without `present` nothing is read.
    unsafe { copy_part::<T, N, 0>(to, from, if present { bytes } else { 0 }) }
}

/// Copies only the first `bytes` bytes of the source, a multiple of 4, and fills the rest of the destination with
/// zeros.
///
/// If `LINE` is 128 or 256, the L2 cache fetches the aligned 128 or 256 bytes that contain the source at once. That is
/// faster than one half after the other. The copy must then have 16 bytes; it needs PTX 7.4. 0 means no prefetch.
///
/// # Safety
///
/// As for [`copy`], but only the bytes that are read need to lie in an allocation.
#[inline(always)]
#[track_caller]
pub unsafe fn copy_part<T: Element, const N: usize, const LINE: u32>(
    to: Shared<T>,
    from: Global<T>,
    bytes: u32,
) {
    const {
        assert!(
            matches!(N * size_of::<T>(), 4 | 8 | 16),
            "a copy is of 4, 8 or 16 bytes"
        );
        assert!(
            LINE == 0 || matches!(LINE, 128 | 256) && N * size_of::<T>() == 16,
            "with a copy of 16 bytes, the cache gets 128 or 256"
        )
    };
    // SAFETY: the caller guarantees valid, aligned addresses and no conflicting access.
    unsafe {
        backend::copy_async_part::<LINE>(
            to.address(),
            from.address(),
            const { (N * size_of::<T>()) as u32 },
            bytes,
        )
    }
}

/// Makes a group of the copies that the thread has started since the last group. A group may be empty.
#[inline(always)]
#[track_caller]
pub fn commit() {
    backend::commit_async();
}

/// Waits until at most the last `PENDING` groups of the thread are in flight.
#[inline(always)]
#[track_caller]
pub fn wait<const PENDING: u32>() {
    backend::wait_async::<PENDING>();
}
