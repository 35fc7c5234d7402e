//! Asynchronous copies from global to shared memory.

use simt::lane;

#[inline(never)]
#[track_caller]
pub(crate) unsafe fn copy_async(to: u32, from: u64, bytes: u32) {
    lane::copy_async(to.into(), from, bytes, bytes);
}

#[inline(never)]
#[track_caller]
pub(crate) unsafe fn copy_async_part<const LINE: u32>(to: u32, from: u64, bytes: u32, read: u32) {
    lane::copy_async(to.into(), from, bytes, read);
}

pub(crate) use lane::commit_async;

#[inline(never)]
#[track_caller]
pub(crate) fn wait_async<const PENDING: u32>() {
    lane::wait_async(PENDING);
}
