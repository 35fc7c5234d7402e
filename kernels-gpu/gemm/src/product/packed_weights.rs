//! Copies of W that the host has packed in the order of use.

use cuda_std::async_copy;
use cuda_std::prelude::*;

/// Begins the copy of `bytes` bytes of packed W to shared memory; all threads of the block share the work.
///
/// # Safety
///
/// Both sides have these bytes and begin at multiples of 16, `bytes` is one too, and no thread uses `to`. All threads
/// of the block call it.
#[inline(always)]
pub(crate) unsafe fn copy(from: Global<u32>, to: Shared<u32>, bytes: u32) {
    let mut i = 16 * thread::thread_idx_x();
    while i < bytes {
        // SAFETY: `i` is a multiple of 16 below `bytes`.
        unsafe { async_copy::copy::<u32, 4>(to.offset_bytes(i), from.offset_bytes(i.into())) };
        i += 16 * thread::block_dim_x();
    }
}
