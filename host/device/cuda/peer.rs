//! Copies from one GPU to another, ordered by the streams of both.

use super::{Cuda, CudaQueue};
use crate::device::error::DeviceError;

impl Cuda {
    /// Lets this GPU read the memory of `other`; returns whether the hardware can.
    pub fn enable_peer_access(&self, other: &Self) -> Result<bool, DeviceError> {
        self.checked(self.context.enable_peer_access(&other.context))
    }

    /// Copies from a GPU, which may be this one, after all earlier work of both queues and before all later work of
    /// both.
    ///
    /// # Safety
    ///
    /// The bytes at `to` lie inside one allocation of this device, those at `from` inside one of `source`. Whoever
    /// frees or reuses either memory does so in the order of its queue.
    pub unsafe fn copy_from(
        &self,
        queue: &CudaQueue,
        to: u64,
        (source, source_queue): (&Self, &CudaQueue),
        from: u64,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let is_other = !std::ptr::eq(queue, source_queue);
        if is_other {
            self.checked(queue.wait_for(source_queue))?;
        }
        // SAFETY: the caller's contract; the queues order the copy with all other uses.
        let copied =
            unsafe { (queue.stream()).copy_from_context(to, &source.context, from, bytes) };
        let ordered = match is_other {
            true => source_queue.wait_for(queue),
            false => Ok(()),
        };
        if copied.is_err() || ordered.is_err() {
            // Nobody would wait for the copy.
            let _ = queue.synchronize();
        }
        self.checked(copied)?;
        source.checked(ordered)
    }
}
