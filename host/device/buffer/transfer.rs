//! Copies from one slice to another: on one device, from GPU to GPU, or through the host.

use crate::device::error::DeviceError;
#[cfg(cuda)]
use crate::device::{Backend, buffer::uses::Access};
use crate::device::{Device, DeviceSlice, DeviceSliceMut};
use cuda_std::element::Element;

impl Device {
    /// Lets this device read the memory of `other` directly, if the hardware can: over NVLink, say. Copies from there
    /// then need no detour through the host. Returns whether it can; always true for two handles of one GPU, and
    /// false for emulators.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn enable_peer_access(&self, other: &Self) -> Result<bool, DeviceError> {
        match (&*self.backend, &*other.backend) {
            #[cfg(cuda)]
            (Backend::Cuda(this), Backend::Cuda(other)) => this.enable_peer_access(other),
            _ => Ok(self == other),
        }
    }
}

impl<T: Element> DeviceSliceMut<'_, T> {
    /// Copies all elements of another slice, which may be on another device.
    ///
    /// It comes after all earlier work of both devices, and before all later work of both. Between GPUs it does not
    /// wait: the driver copies from one to the other, directly if [`Device::enable_peer_access`] has allowed it.
    ///
    /// # Errors
    ///
    /// Another length than this slice's; a launch that failed before, on either device; on an emulator elements that no
    /// one has written.
    pub fn copy_from<'a>(
        &mut self,
        from: impl Into<DeviceSlice<'a, T>>,
    ) -> Result<(), DeviceError> {
        let from = from.into();
        self.as_slice()
            .check_len("the slice to copy from", from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        for device in [self.device(), from.device()] {
            device.recordings.refuse("a copy between slices")?;
        }
        #[cfg(cuda)]
        if let (Backend::Cuda(target), Backend::Cuda(source)) =
            (&*self.device().backend, &*from.device().backend)
        {
            self.as_slice().use_now(self.write());
            from.use_now(Access::Read);
            let queue = self.device().streams.current();
            let source_queue = from.device().streams.current();
            let (to, bytes) = (self.address(), from.bytes());
            // SAFETY: the slices have the same length, checked above; who uses them later does so in the order of the
            // queues.
            return unsafe {
                let source = (&**source, source_queue.cuda());
                target.copy_from(queue.cuda(), to, source, from.address(), bytes)
            };
        }
        self.copy_from_slice(&from.download()?)
    }
}
