//! Copies from global to shared memory that run beside the thread.

use simt::lane;

#[inline(always)]
#[track_caller]
pub(crate) unsafe fn copy_async(to: u32, from: u64, bytes: u32) {
    lane::copy_async(to.into(), Some(from), bytes);
}

#[inline(always)]
#[track_caller]
pub(crate) unsafe fn copy_async_or_zeros(to: u32, from: u64, bytes: u32, present: bool) {
    lane::copy_async(to.into(), present.then_some(from), bytes);
}

pub(crate) use lane::commit_async;

#[inline(always)]
#[track_caller]
pub(crate) fn wait_async<const PENDING: u32>() {
    lane::wait_async(PENDING);
}
