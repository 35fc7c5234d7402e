//! Slices and buffers of memory that belongs to someone else.

use crate::device::Device;
use crate::device::buffer::DeviceBuffer;
use crate::device::error::DeviceError;
use crate::device::slice::DeviceSlice;
use crate::device::slice_mut::DeviceSliceMut;
use cuda_std::element::Element;
use std::any::Any;
use std::marker::PhantomData;

impl Device {
    /// Borrows `len` elements of device memory that belongs to someone else, to be read: what PyTorch's `data_ptr()`,
    /// CUDA's `cudaMalloc` or another library has given. Nothing is copied, and nobody frees it here.
    ///
    /// ```
    /// use warprow::Device;
    ///
    /// # fn main() -> Result<(), warprow::Error> {
    /// let device = Device::open()?;
    /// let theirs = device.upload(&[1.0_f32, 2.0, 3.0])?;
    /// // SAFETY: `theirs` has three elements, and lives longer than the slice.
    /// let x = unsafe { device.slice_from_raw::<f32>(theirs.as_slice().address(), 3)? };
    /// assert_eq!(x.download()?, [1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`DeviceError::RawMemory`] if the address is null or not aligned to an element, or if the end is beyond the
    /// address space; never if `len` is 0. A `run` of an operation also wants an alignment of 16 bytes.
    ///
    /// # Safety
    ///
    /// During `'a`:
    ///
    /// - The memory is allocated, and kernels of this device's context can read all of it. On an emulator it is memory
    ///   of that emulator.
    /// - Its elements are initialised, and nobody writes them, except work that comes before the slice's first use or
    ///   after its last one. This device orders its own work only: whoever uses the memory on another stream makes the
    ///   streams wait for each other.
    /// - The memory outlives the work that uses the slice, which may still run when `'a` ends. Whoever frees it waits
    ///   for the device, or frees it in the order of the same stream. A [recording](Self::record) that has used the
    ///   slice needs the memory in each of its launches.
    pub unsafe fn slice_from_raw<'a, T: Element>(
        &'a self,
        address: u64,
        len: usize,
    ) -> Result<DeviceSlice<'a, T>, DeviceError> {
        check_raw::<T>(address, len)?;
        Ok(DeviceSlice {
            device: self,
            memory: None,
            address,
            len,
            is_part: false,
            element: PhantomData,
        })
    }

    /// As [`slice_from_raw`](Self::slice_from_raw), to be read and written.
    ///
    /// # Errors
    ///
    /// As for [`slice_from_raw`](Self::slice_from_raw).
    ///
    /// # Safety
    ///
    /// As for [`slice_from_raw`](Self::slice_from_raw), except that the elements need no initial value. Kernels can
    /// write all of it, and nobody else reads or writes it in the meantime.
    pub unsafe fn slice_from_raw_mut<'a, T: Element>(
        &'a self,
        address: u64,
        len: usize,
    ) -> Result<DeviceSliceMut<'a, T>, DeviceError> {
        // SAFETY: the caller guarantees that the memory is there, and that nobody else uses it.
        unsafe { Ok(DeviceSliceMut::new(self.slice_from_raw(address, len)?)) }
    }

    /// A buffer of `len` elements in device memory that belongs to someone else. Unlike a slice it has no lifetime, and
    /// this device's [streams](Self::new_stream) wait for each other where they use it. It is not freed here: `owner`
    /// is dropped when neither a buffer nor a [recording](Self::record) has the memory any more. Pass what keeps the
    /// memory alive, or `()`.
    ///
    /// When it is dropped, the stream of the thread that has made the buffer, at that time, waits for all other streams
    /// that have used it. So whoever frees the memory in the order of that stream needs no other wait.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use warprow::Device;
    ///
    /// # fn main() -> Result<(), warprow::Error> {
    /// let device = Device::open()?;
    /// let theirs = Arc::new(device.upload(&[1.0_f32, 2.0, 3.0])?);
    /// let address = theirs.as_slice().address();
    /// // SAFETY: `theirs` has three elements; the buffer keeps it, and nobody else uses it.
    /// let buffer = unsafe { device.buffer_from_raw::<f32>(address, 3, theirs)? };
    /// assert_eq!(buffer.download()?, [1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`slice_from_raw`](Self::slice_from_raw). `owner` is dropped then.
    ///
    /// # Safety
    ///
    /// Until `owner` is dropped:
    ///
    /// - The memory is allocated, and kernels of this device's context can read and write all of it. On an emulator it
    ///   is memory of that emulator.
    /// - Nobody else uses it, except work on the stream of this thread before this call.
    ///
    /// The work that uses the memory may still run when `owner` is dropped: whoever frees the memory then frees it in
    /// the order of that stream, or waits for the stream.
    pub unsafe fn buffer_from_raw<T: Element>(
        &self,
        address: u64,
        len: usize,
        owner: impl Any + Send + Sync,
    ) -> Result<DeviceBuffer<T>, DeviceError> {
        check_raw::<T>(address, len)?;
        // SAFETY: the caller's contract; the address has just been checked.
        Ok(unsafe { DeviceBuffer::lent(self, address, len, Box::new(owner)) })
    }
}

/// What can be checked of an address and a length.
fn check_raw<T: Element>(address: u64, len: usize) -> Result<(), DeviceError> {
    let wrong = |reason| {
        Err(DeviceError::RawMemory {
            address,
            len: len as u64,
            element: T::NAME,
            reason,
        })
    };
    if len == 0 {
        return Ok(());
    }
    if address == 0 {
        return wrong("the address is null");
    }
    if !address.is_multiple_of(size_of::<T>() as u64) {
        return wrong("the address is not aligned to an element");
    }
    let bytes = len.checked_mul(size_of::<T>());
    let bytes = bytes.filter(|&bytes| isize::try_from(bytes).is_ok());
    match bytes.and_then(|bytes| address.checked_add(bytes as u64)) {
        Some(_) => Ok(()),
        None => wrong("the end is beyond the address space"),
    }
}
