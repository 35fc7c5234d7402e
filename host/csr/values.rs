//! The values of a matrix on a device, to be overwritten.

use super::{Sign, copy_values};
use crate::device::{DeviceBuffer, DeviceError};
use cuda_std::element::Element;
use cuda_std::memory::GlobalMut;
use std::ops::Deref;
use std::sync::Arc;

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
/// std::mem::swap(&mut *a.values_mut(), &mut shorter); // the values of `a` stay in their buffer
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ValuesMut<'a, T: Element>(&'a mut Arc<DeviceBuffer<T>>);

impl<'a, T: Element> ValuesMut<'a, T> {
    pub(super) fn new(values: &'a mut Arc<DeviceBuffer<T>>) -> Self {
        Self(values)
    }

    /// The buffer, for who overwrites all of it: another one if this one is shared.
    fn overwritten(&mut self) -> Result<&mut DeviceBuffer<T>, DeviceError> {
        if Arc::get_mut(self.0).is_none() {
            *self.0 = Arc::new(self.device().uninitialized(self.len())?);
        }
        Ok(Arc::get_mut(self.0).expect("the buffer is this matrix's alone"))
    }

    /// As [`DeviceBuffer::copy_from_slice`].
    ///
    /// # Errors
    ///
    /// Another length than the number of nonzeros; too little device memory, if the values are shared; a launch that
    /// failed before.
    pub fn copy_from_slice(&mut self, from: &[T]) -> Result<(), DeviceError> {
        self.overwritten()?.copy_from_slice(from)
    }

    /// As [`DeviceBuffer::fill_zero`].
    ///
    /// # Errors
    ///
    /// Too little device memory, if the values are shared; a launch that failed before.
    pub fn fill_zero(&mut self) -> Result<(), DeviceError> {
        self.overwritten()?.fill_zero()
    }

    /// As [`DeviceBuffer::fill_bytes`].
    ///
    /// # Errors
    ///
    /// Too little device memory, if the values are shared; a launch that failed before.
    pub fn fill_bytes(&mut self, value: u8) -> Result<(), DeviceError> {
        self.overwritten()?.fill_bytes(value)
    }

    /// The pointer to the first value, for kernels that write. Values that are shared are copied first.
    ///
    /// # Errors
    ///
    /// Too little device memory, if the values are shared; a launch that failed before.
    pub fn mutable(&mut self) -> Result<GlobalMut<T>, DeviceError> {
        if Arc::get_mut(self.0).is_none() {
            *self.0 = Arc::new(copy(self.0)?);
        }
        Ok(self.overwritten()?.mutable())
    }
}

/// A copy of a matrix's values.
pub(super) fn copy<T: Element>(values: &DeviceBuffer<T>) -> Result<DeviceBuffer<T>, DeviceError> {
    let mut copied = values.device().uninitialized(values.len())?;
    copy_values(None, values, Sign::Kept, &mut copied)?;
    Ok(copied)
}

impl<T: Element> Deref for ValuesMut<'_, T> {
    type Target = DeviceBuffer<T>;

    fn deref(&self) -> &DeviceBuffer<T> {
        self.0
    }
}
