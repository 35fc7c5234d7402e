//! Copies from one buffer to another: on one device, from GPU to GPU, or through the host.

use super::error::DeviceError;
use super::{Backend, Device, DeviceBuffer};
use cuda_std::element::Element;
use std::ops::Range;
use std::slice;

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

impl<T: Element> DeviceBuffer<T> {
    /// Copies elements of another buffer, which may be on another device, to here from number `start` on.
    ///
    /// It comes after all earlier work of both devices, and before all later work of both. Between GPUs it does not
    /// wait: the driver copies from one to the other, directly if [`Device::enable_peer_access`] has allowed it.
    ///
    /// # Errors
    ///
    /// A launch that failed before, on either device; on an emulator elements that no one has written.
    ///
    /// # Panics
    ///
    /// If `elements` are not all in `from`, or there are not as many here from `start` on.
    pub fn copy_part_from(
        &mut self,
        start: usize,
        from: &DeviceBuffer<T>,
        elements: Range<usize>,
    ) -> Result<(), DeviceError> {
        assert!(elements.start <= elements.end && elements.end <= from.len());
        assert!(start <= self.len() && elements.len() <= self.len() - start);
        if elements.is_empty() {
            return Ok(());
        }
        for device in [self.device(), from.device()] {
            device.recordings.refuse("a copy between buffers")?;
        }
        #[cfg(cuda)]
        if let (Backend::Cuda(target), Backend::Cuda(source)) =
            (&*self.device().backend, &*from.device().backend)
        {
            // Inside the allocations, whose sizes in bytes fit.
            let [to, from] = [
                self.address() + (start * size_of::<T>()) as u64,
                from.address() + (elements.start * size_of::<T>()) as u64,
            ];
            // SAFETY: the elements lie in both buffers, checked above.
            return unsafe { target.copy_from(to, source, from, size_of::<T>() * elements.len()) };
        }
        // SAFETY: zero bits are a value of every element type.
        let zero = unsafe { std::mem::zeroed::<T>() };
        let mut on_host = vec![zero; elements.len()];
        from.copy_part_to_slice(elements.start, &mut on_host)?;
        self.copy_part_from_slice(start, &on_host)
    }

    /// Overwrites as many elements as `from` has, from number `start` on; else as
    /// [`copy_from_slice`](Self::copy_from_slice).
    ///
    /// # Errors
    ///
    /// A launch that failed before.
    ///
    /// # Panics
    ///
    /// If they are not all elements of the buffer.
    pub fn copy_part_from_slice(&mut self, start: usize, from: &[T]) -> Result<(), DeviceError> {
        assert!(start <= self.len() && from.len() <= self.len() - start);
        if from.is_empty() {
            return Ok(());
        }
        self.device().recordings.refuse("a copy to the device")?;
        let address = self.address() + (start * size_of::<T>()) as u64;
        // SAFETY: the slice's own bytes: elements are integers and floats, without padding.
        let bytes = unsafe { slice::from_raw_parts(from.as_ptr().cast::<u8>(), size_of_val(from)) };
        match &*self.device().backend {
            Backend::Emulator(emulator) => emulator.write(address, bytes),
            #[cfg(cuda)]
            // SAFETY: the elements lie in the buffer, checked above.
            Backend::Cuda(cuda) => unsafe { cuda.write(address, bytes) },
        }
    }
}
