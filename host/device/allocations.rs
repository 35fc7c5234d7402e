//! What tests and benches want of a device's memory: how much is allocated, and an allocation that fails.

use super::error::DeviceError;
use super::stream::queue::Queue;
use super::{Backend, Device, on_backend};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the allocation that fails, counted from the next one on, which is 1; 0 if none does.
#[derive(Debug, Default)]
pub(super) struct FailingAllocation(AtomicU64);

impl FailingAllocation {
    /// Counts an allocation; whether it is the one that fails.
    fn is_this(&self) -> bool {
        let next = |number: u64| number.checked_sub(1);
        let counted = (self.0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        counted == Ok(1)
    }
}

impl Device {
    /// For tests: the allocation with this number fails, counted from the next one on, which is 1. It fails once, as
    /// if the device had no memory left. With 0 none fails. Returns the number that was set before, less the
    /// allocations since; 0 if that one has failed.
    #[doc(hidden)]
    pub fn fail_allocation(&self, number: u64) -> u64 {
        self.failing_allocation.0.swap(number, Ordering::Relaxed)
    }

    /// For tests: the bytes of all live allocations of this device and its clones.
    #[doc(hidden)]
    pub fn allocated_bytes(&self) -> u64 {
        on_backend!(&*self.backend, device => device.allocated_bytes())
    }

    /// For benches: the most bytes that the live allocations of this device and its clones had since the last call; on
    /// the emulator, which counts no peak, what they have now.
    #[doc(hidden)]
    pub fn take_peak_bytes(&self) -> u64 {
        on_backend!(&*self.backend, device => device.take_peak_bytes())
    }

    /// Memory for `bytes` bytes of elements of `element_size` bytes, not initialised.
    /// `queue` waits until the former owner's work is done.
    pub(super) fn allocate(
        &self,
        queue: &Queue,
        bytes: u64,
        element_size: u32,
    ) -> Result<u64, DeviceError> {
        if self.failing_allocation.is_this() {
            return Err(DeviceError::OutOfMemory {
                device: self.name().to_owned(),
                wanted: bytes,
                free: None,
            });
        }
        on_backend!(&*self.backend, device => device.allocate(queue, bytes, element_size))
    }
}
