//! Slices of device memory to read and write.

use super::buffer::DeviceBuffer;
use super::buffer::uses::Access;
use super::error::DeviceError;
use super::slice::{DeviceSlice, checked_range};
use super::{Backend, Device};
use cuda_std::element::Element;
use cuda_std::memory::GlobalMut;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::slice;

/// Elements in the memory of a device, to be read and written: of a [`DeviceBuffer`] or a part of one, or of memory
/// that belongs to someone else ([`Device::slice_from_raw_mut`]).
///
/// Every `run` of an operation takes `impl Into<DeviceSliceMut>`, so `&mut buffer` will do. There the first element
/// must be aligned to 16 bytes, which the start of a buffer always is.
///
/// ```
/// use warprow::Device;
///
/// # fn main() -> Result<(), warprow::Error> {
/// let device = Device::open()?;
/// let mut buffer = device.upload(&[1_u32, 2, 3, 4, 5])?;
/// let (mut first, mut last) = buffer.as_mut_slice().split_at(2)?;
/// first.copy_from_slice(&[8, 9])?;
/// last.fill_zero()?;
/// assert_eq!(buffer.download()?, [8, 9, 0, 0, 0]);
/// # Ok(())
/// # }
/// ```
pub struct DeviceSliceMut<'a, T: Element> {
    slice: DeviceSlice<'a, T>,
    exclusive: PhantomData<&'a mut [T]>,
}

impl<'a, T: Element> DeviceSliceMut<'a, T> {
    /// # Safety
    ///
    /// Nobody else uses the elements during `'a`, and they may be written.
    pub(super) unsafe fn new(slice: DeviceSlice<'a, T>) -> Self {
        Self {
            slice,
            exclusive: PhantomData,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.slice.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.slice.is_empty()
    }

    /// The device that has the memory.
    pub fn device(&self) -> &'a Device {
        self.slice.device
    }

    /// The same elements, to be read.
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        self.slice
    }

    /// The same elements, to be read from now on.
    pub fn into_slice(self) -> DeviceSlice<'a, T> {
        self.slice
    }

    /// The same elements for a while: this slice can be used again afterwards.
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut {
            slice: self.slice,
            exclusive: PhantomData,
        }
    }

    /// A part of the elements.
    ///
    /// # Errors
    ///
    /// [`DeviceError::SliceRange`] if not all of `range` is in the slice.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self, DeviceError> {
        Ok(Self {
            slice: self.slice.slice(range)?,
            exclusive: PhantomData,
        })
    }

    /// The elements before number `middle`, and those from it on.
    ///
    /// # Errors
    ///
    /// [`DeviceError::SliceRange`] if the slice has fewer elements.
    pub fn split_at(self, middle: usize) -> Result<(Self, Self), DeviceError> {
        checked_range(..middle, self.len())?;
        let part = |slice| Self {
            slice,
            exclusive: PhantomData,
        };
        Ok((
            part(self.slice.slice(..middle)?),
            part(self.slice.slice(middle..)?),
        ))
    }

    /// How a write uses the allocation.
    pub(super) fn write(&self) -> Access {
        match self.slice.is_part {
            true => Access::WritePart,
            false => Access::Write,
        }
    }

    /// The pointer to the first element, for kernels that write.
    pub fn mutable(&mut self) -> GlobalMut<T> {
        if let Some(memory) = self.slice.memory {
            memory.use_in_launch(self.write());
        }
        GlobalMut::from_address(self.slice.address)
    }

    /// The address of the first element, as [`DeviceSlice::address`].
    pub fn address(&self) -> u64 {
        self.slice.address
    }

    /// A copy of the elements, as [`DeviceSlice::download`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn download(&self) -> Result<Vec<T>, DeviceError> {
        self.slice.download()
    }

    /// Overwrites the elements, after all earlier work of the device. `from` may be changed afterwards.
    ///
    /// # Errors
    ///
    /// Another length than the slice's; a launch that failed before.
    pub fn copy_from_slice(&mut self, from: &[T]) -> Result<(), DeviceError> {
        self.slice.check_len("the slice to copy from", from.len())?;
        if self.is_empty() {
            return Ok(());
        }
        self.device().recordings.refuse("a copy to the device")?;
        // SAFETY: the slice's own bytes: elements are integers and floats, without padding.
        let bytes = unsafe { slice::from_raw_parts(from.as_ptr().cast::<u8>(), size_of_val(from)) };
        self.slice.use_now(self.write());
        match &*self.device().backend {
            Backend::Emulator(emulator) => emulator.write(self.address(), bytes),
            #[cfg(cuda)]
            // SAFETY: the slice's own memory, which has the length of `from`.
            Backend::Cuda(cuda) => unsafe {
                let queue = self.device().streams.current();
                cuda.write(queue.cuda(), self.address(), bytes)
            },
        }
    }

    /// Sets all elements to zero, after all earlier work of the device.
    ///
    /// # Errors
    ///
    /// A launch that failed before.
    pub fn fill_zero(&mut self) -> Result<(), DeviceError> {
        if self.is_empty() {
            return Ok(());
        }
        self.device().recordings.refuse("to set a buffer's bytes")?;
        let bytes = self.slice.bytes();
        self.slice.use_now(self.write());
        match &*self.device().backend {
            Backend::Emulator(emulator) => emulator.zero(self.address(), bytes),
            #[cfg(cuda)]
            // SAFETY: the slice's own memory.
            Backend::Cuda(cuda) => unsafe {
                let queue = self.device().streams.current();
                cuda.fill(queue.cuda(), self.address(), bytes, 0)
            },
        }
    }

    /// Sets all bytes to `value`, after all earlier work of the device. With 0xff floating-point elements become NaN.
    ///
    /// # Errors
    ///
    /// A launch that failed before.
    pub fn fill_bytes(&mut self, value: u8) -> Result<(), DeviceError> {
        if self.is_empty() {
            return Ok(());
        }
        self.device().recordings.refuse("to set a buffer's bytes")?;
        let bytes = self.slice.bytes();
        self.slice.use_now(self.write());
        match &*self.device().backend {
            Backend::Emulator(emulator) => emulator.fill(self.address(), bytes, value),
            #[cfg(cuda)]
            // SAFETY: the slice's own memory.
            Backend::Cuda(cuda) => unsafe {
                let queue = self.device().streams.current();
                cuda.fill(queue.cuda(), self.address(), bytes, value)
            },
        }
    }
}

impl<'a, T: Element> From<&'a mut DeviceBuffer<T>> for DeviceSliceMut<'a, T> {
    fn from(buffer: &'a mut DeviceBuffer<T>) -> Self {
        buffer.as_mut_slice()
    }
}

impl<'a, T: Element> From<&'a mut DeviceSliceMut<'_, T>> for DeviceSliceMut<'a, T> {
    fn from(slice: &'a mut DeviceSliceMut<'_, T>) -> Self {
        slice.reborrow()
    }
}

impl<T: Element> fmt::Debug for DeviceSliceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.device().identity();
        write!(
            f,
            "DeviceSliceMut({} x {} on {device})",
            self.len(),
            T::NAME
        )
    }
}
