//! Memory of the host that the driver can copy while the host goes on.

use super::check;
use super::context::Context;
use crate::device::error::DriverError;
use cust::sys;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Pinned bytes of the host, freed when they are dropped.
#[derive(Debug)]
pub(in crate::device) struct PinnedBytes {
    start: NonNull<c_void>,
    context: Arc<Context>,
}

// SAFETY: the memory has no thread of its own.
unsafe impl Send for PinnedBytes {}
// SAFETY: nobody writes through a shared reference.
unsafe impl Sync for PinnedBytes {}

impl PinnedBytes {
    /// `bytes` bytes, at least one, which are zero, aligned to a page.
    pub fn zeros(context: &Arc<Context>, bytes: usize) -> Result<Self, DriverError> {
        context.make_current()?;
        let mut start = ptr::null_mut();
        // SAFETY: the driver writes one pointer.
        check("allocate pinned memory", unsafe {
            sys::cuMemAllocHost_v2(&raw mut start, bytes)
        })?;
        let start = NonNull::new(start).expect("a driver that succeeds gives memory");
        // SAFETY: the driver has given so many bytes.
        unsafe { start.cast::<u8>().write_bytes(0, bytes) };
        Ok(Self {
            start,
            context: Arc::clone(context),
        })
    }

    pub fn start(&self) -> NonNull<c_void> {
        self.start
    }
}

impl Drop for PinnedBytes {
    fn drop(&mut self) {
        // If that fails, the context is lost, and the memory with it.
        let _ = self.context.make_current();
        // SAFETY: it was allocated here, and no copy uses it any more.
        unsafe { sys::cuMemFreeHost(self.start.as_ptr()) };
    }
}
