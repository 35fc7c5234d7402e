//! Copies from global to shared memory that run beside the thread (`cp.async`).
//!
//! A thread begins copies, makes groups of them with [`commit`], and waits for all groups but the last few with [`wait`]. The
//! data take no registers on their way, so that many loads are in flight while the thread computes on what came before.
//! Each thread waits for its own copies; a barrier after the wait makes them visible to the others.
//!
//! ```
//! use cuda_std::prelude::*;
//! use cuda_std::async_copy;
//!
//! /// Reverses each block's 64 elements.
//! ///
//! /// # Safety
//! ///
//! /// `input` and `output` hold 64 elements a block; blocks have 64 threads.
//! #[kernel(T = [f32])]
//! pub unsafe fn reverse<T: Element>(input: Global<T>, output: GlobalMut<T>) {
//!     let tile = shared_array!(T; 64);
//!     let (lane, base) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize * 64);
//!     // SAFETY: each thread copies and writes its own element; a barrier comes before it reads another's.
//!     unsafe {
//!         async_copy::copy::<T, 1>(tile.offset(lane), input.offset(base + lane));
//!         async_copy::commit();
//!         async_copy::wait::<0>();
//!         thread::sync_threads();
//!         output.store(base + lane, tile.load(63 - lane));
//!     }
//! }
//! ```

use crate::backend;
use crate::element::Element;
use crate::memory::{Global, Shared};

/// Begins a copy of `N` elements, 4, 8 or 16 bytes in all. The one of 16 bytes goes past the first-level cache.
///
/// # Safety
///
/// The elements lie inside one allocation and inside the block's shared memory, both addresses are multiples of the size of the
/// copy, no thread writes the source during the launch, and no thread touches the destination until this one has waited.
#[inline(always)]
#[track_caller]
pub unsafe fn copy<T: Element, const N: usize>(to: Shared<T>, from: Global<T>) {
    const {
        assert!(
            matches!(N * size_of::<T>(), 4 | 8 | 16),
            "a copy is of 4, 8 or 16 bytes"
        )
    };
    // SAFETY: the caller's contract.
    unsafe {
        backend::copy_async(
            to.address(),
            from.address(),
            const { (N * size_of::<T>()) as u32 },
        )
    }
}

/// As [`copy`] if the source is present, else as many zeros are written in the same way, and nothing is read.
///
/// # Safety
///
/// That of [`copy`]; if it is not present, the source may be anywhere.
#[inline(always)]
#[track_caller]
pub unsafe fn copy_or_zeros<T: Element, const N: usize>(
    to: Shared<T>,
    from: Global<T>,
    present: bool,
) {
    let bytes = const { (N * size_of::<T>()) as u32 };
    // SAFETY: the caller's contract.
    unsafe { copy_part::<T, N, 0>(to, from, if present { bytes } else { 0 }) }
}

/// As [`copy`] of the first `bytes` bytes of the source, a multiple of 4; the rest of the destination becomes zero, and nothing is read for it.
///
/// If `LINE` is 128 or 256, and not 0, the second-level cache gets at once all of that many bytes among which the source's are: memory
/// delivers them together faster than one half after another. A copy is then of 16 bytes, and wants PTX 7.4.
///
/// # Safety
///
/// That of [`copy`]; of the source, as many bytes lie inside one allocation as are read.
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
    // SAFETY: the caller's contract.
    unsafe {
        backend::copy_async_part::<LINE>(
            to.address(),
            from.address(),
            const { (N * size_of::<T>()) as u32 },
            bytes,
        )
    }
}

/// Makes a group of the copies that the thread has begun since the last one; it may be empty.
#[inline(always)]
#[track_caller]
pub fn commit() {
    backend::commit_async();
}

/// Waits until no more than the last `PENDING` groups of the thread are on their way.
#[inline(always)]
#[track_caller]
pub fn wait<const PENDING: u32>() {
    backend::wait_async::<PENDING>();
}
