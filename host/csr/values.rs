//! The values of a matrix on a device, to be overwritten.

use crate::device::{DeviceBuffer, DeviceError, DeviceSliceMut};
use cuda_std::element::Element;
use cuda_std::memory::GlobalMut;
use std::ops::Deref;

/// The values of a matrix's nonzeros, to be overwritten. The buffer itself cannot be replaced: kernels rely on its
/// length and its device.
///
/// Beside its own methods it has those of a `&DeviceBuffer`.
///
/// ```compile_fail,E0596
/// # use warprow::{Device, DeviceCsr, generate};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let device = Device::open()?;
/// # let a = generate::uniform::<f32>(10, 10, 50, 1)?;
/// let mut a = DeviceCsr::upload(&device, a.view())?;
/// let mut shorter = device.zeros::<f32>(1)?;
/// std::mem::swap(&mut *a.values_mut()?, &mut shorter); // the values of `a` stay in their buffer
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ValuesMut<'a, T: Element>(&'a mut DeviceBuffer<T>);

impl<'a, T: Element> ValuesMut<'a, T> {
    pub(super) fn new(values: &'a mut DeviceBuffer<T>) -> Self {
        Self(values)
    }

    /// As [`DeviceBuffer::copy_from_slice`].
    ///
    /// # Errors
    ///
    /// Another length than the number of nonzeros; a launch that failed before.
    pub fn copy_from_slice(&mut self, from: &[T]) -> Result<(), DeviceError> {
        self.0.copy_from_slice(from)
    }

    /// As [`DeviceBuffer::fill_zero`].
    ///
    /// # Errors
    ///
    /// A launch that failed before.
    pub fn fill_zero(&mut self) -> Result<(), DeviceError> {
        self.0.fill_zero()
    }

    /// As [`DeviceBuffer::fill_bytes`].
    ///
    /// # Errors
    ///
    /// A launch that failed before.
    pub fn fill_bytes(&mut self, value: u8) -> Result<(), DeviceError> {
        self.0.fill_bytes(value)
    }

    /// The pointer to the first value, for kernels that write.
    pub fn mutable(&mut self) -> GlobalMut<T> {
        self.0.mutable()
    }
}

impl<'a, T: Element> From<&'a mut ValuesMut<'_, T>> for DeviceSliceMut<'a, T> {
    fn from(values: &'a mut ValuesMut<'_, T>) -> Self {
        values.0.as_mut_slice()
    }
}

impl<T: Element> Deref for ValuesMut<'_, T> {
    type Target = DeviceBuffer<T>;

    fn deref(&self) -> &DeviceBuffer<T> {
        self.0
    }
}
