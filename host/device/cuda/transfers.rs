//! Copies from and to pinned memory, for which nobody waits.

use super::driver::{Event, PinnedBytes};
use super::{Cuda, CudaQueue};
use crate::device::error::DeviceError;
use cust::error::CudaError;
use std::ffi::c_void;

impl Cuda {
    /// Pinned memory of `bytes` bytes, at least one, which are zero.
    pub fn pinned(&self, bytes: usize) -> Result<PinnedBytes, DeviceError> {
        match PinnedBytes::zeros(&self.context, bytes) {
            Ok(memory) => Ok(memory),
            Err(error) if error.code == CudaError::OutOfMemory as u32 => {
                Err(DeviceError::HostOutOfMemory {
                    wanted: bytes as u64,
                })
            }
            Err(error) => Err(self.driver_error(error)),
        }
    }

    /// Starts a copy from the device, and gives an event after it.
    ///
    /// # Safety
    ///
    /// Both ranges are valid until the event is done, and nobody uses the host's bytes before.
    pub unsafe fn start_read(
        &self,
        queue: &CudaQueue,
        from: u64,
        to: *mut c_void,
        bytes: usize,
    ) -> Result<Event, DeviceError> {
        let end = self.checked(Event::new(&self.context))?;
        // SAFETY: the caller's contract.
        let started = unsafe { queue.stream().copy_from_device(to, from, bytes) };
        self.end_of_copy(queue, started, end)
    }

    /// Starts a copy to the device, and gives an event after it.
    ///
    /// # Safety
    ///
    /// Both ranges are valid until the event is done, and nobody changes the host's bytes before.
    pub unsafe fn start_write(
        &self,
        queue: &CudaQueue,
        to: u64,
        from: *const c_void,
        bytes: usize,
    ) -> Result<Event, DeviceError> {
        let end = self.checked(Event::new(&self.context))?;
        // SAFETY: the caller's contract.
        let started = unsafe { queue.stream().copy_to_device(to, from, bytes) };
        self.end_of_copy(queue, started, end)
    }

    /// Records the event after a copy. After an error no copy runs, so the caller may drop the memory.
    fn end_of_copy(
        &self,
        queue: &CudaQueue,
        started: Result<(), super::DriverError>,
        end: Event,
    ) -> Result<Event, DeviceError> {
        let recorded = started.and_then(|()| end.record(queue.stream()));
        if let Err(error) = recorded {
            // The copy may have begun. If this fails too, the context is lost.
            let _ = queue.synchronize();
            return Err(self.driver_error(error));
        }
        Ok(end)
    }

    /// Whether the work before an event is done.
    pub fn is_done(&self, event: Option<&Event>) -> Result<bool, DeviceError> {
        self.checked(event.map_or(Ok(true), Event::is_done))
    }

    /// Waits until the work before an event is done.
    pub fn wait_for(&self, event: Option<&Event>) -> Result<(), DeviceError> {
        self.checked(event.map_or(Ok(()), Event::synchronize))
    }
}
