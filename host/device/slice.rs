//! Slices of device memory to read.

use super::buffer::uses::Access;
use super::buffer::{DeviceBuffer, Memory};
use super::error::DeviceError;
use super::slice_mut::DeviceSliceMut;
use super::{Backend, Device};
use cuda_std::element::Element;
use cuda_std::memory::Global;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::rc::Rc;
use std::slice;
use std::sync::Arc;

/// Elements in the memory of a device, to be read: of a [`DeviceBuffer`] or a part of one, or of memory that belongs
/// to someone else ([`Device::slice_from_raw`]).
///
/// Every `run` of an operation takes `impl Into<DeviceSlice>`, so `&buffer` will do. There the first element must be
/// aligned to 16 bytes, which the start of a buffer always is.
///
/// ```
/// use warprow::Device;
///
/// # fn main() -> Result<(), warprow::Error> {
/// let device = Device::open()?;
/// let buffer = device.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0])?;
/// assert_eq!(buffer.slice(1..3)?.download()?, [2.0, 3.0]);
/// assert!(buffer.slice(4..6).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct DeviceSlice<'a, T: Element> {
    pub(super) device: &'a Device,
    /// The allocation that the elements are in; `None` if it belongs to someone else.
    pub(super) memory: Option<&'a Arc<Memory>>,
    /// The address of the first element.
    pub(super) address: u64,
    pub(super) len: usize,
    /// Whether others may have slices of other elements of the allocation.
    pub(super) is_part: bool,
    pub(super) element: PhantomData<&'a [T]>,
}

impl<'a, T: Element> DeviceSlice<'a, T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that has the memory.
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// A part of the elements.
    ///
    /// # Errors
    ///
    /// [`DeviceError::SliceRange`] if not all of `range` is in the slice.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self, DeviceError> {
        let (start, len) = checked_range(range, self.len)?;
        Ok(Self {
            // Inside the slice, whose size in bytes fits.
            address: self.address + (start * size_of::<T>()) as u64,
            len,
            is_part: self.is_part || len < self.len,
            ..*self
        })
    }

    /// The pointer to the first element, for kernels that read. The call also makes the thread's current stream wait
    /// for the work of other streams that has written the allocation; while the thread records, the recording keeps
    /// the allocation instead.
    pub fn read_only(&self) -> Global<T> {
        if let Some(memory) = self.memory {
            memory.use_in_launch(Access::Read);
        }
        Global::from_address(self.address)
    }

    /// A copy of the elements, after all earlier work of the device. Elements that no one has written are arbitrary
    /// on a GPU and on an emulator that checks only bounds; on an emulator with full checks they are an error.
    ///
    /// # Errors
    ///
    /// A launch that failed before; a host without memory for the copy; [`DeviceError::EmulatorMemory`] with the
    /// position of the first element that no one has written.
    pub fn download(&self) -> Result<Vec<T>, DeviceError> {
        let mut elements: Vec<T> = Vec::new();
        elements
            .try_reserve_exact(self.len)
            .map_err(|_| DeviceError::HostOutOfMemory {
                wanted: self.bytes() as u64,
            })?;
        // SAFETY: the capacity is there, and zero bits are a value of every element type.
        unsafe {
            elements.as_mut_ptr().write_bytes(0, self.len);
            elements.set_len(self.len);
        }
        self.copy_to_slice(&mut elements)?;
        Ok(elements)
    }

    /// Copies the elements to `to`, as [`download`](Self::download) does.
    ///
    /// # Errors
    ///
    /// Those of [`download`](Self::download), and another length than the slice's.
    pub fn copy_to_slice(&self, to: &mut [T]) -> Result<(), DeviceError> {
        self.check_len("the slice to copy to", to.len())?;
        if to.is_empty() {
            return Ok(());
        }
        self.device.recordings.refuse("a copy from the device")?;
        // SAFETY: the slice's own bytes; every pattern of bits is a value of an element type.
        let bytes =
            unsafe { slice::from_raw_parts_mut(to.as_mut_ptr().cast::<u8>(), size_of_val(to)) };
        self.use_now(Access::Read);
        match &*self.device.backend {
            Backend::Emulator(emulator) => emulator.read(self.address, bytes),
            #[cfg(cuda)]
            // SAFETY: the slice's own memory, which has the length of `to`.
            Backend::Cuda(cuda) => unsafe {
                let queue = self.device.streams.current();
                cuda.read(queue.cuda(), self.address, bytes)
            },
        }
    }

    /// The address of the first element: a `CUdeviceptr` on a GPU, no address of the host on the emulator.
    ///
    /// Whoever uses it must respect the lifetime of the slice, and the order of the device's work.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The allocation that the elements are in; `None` if it belongs to someone else.
    pub(super) fn memory(&self) -> Option<&'a Arc<Memory>> {
        self.memory
    }

    /// Makes this thread's stream wait for the work of other streams that use the elements.
    pub(super) fn use_now(&self, access: Access) {
        if let Some(memory) = self.memory {
            memory.use_now(access);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        // Whoever made the slice has checked that it fits.
        self.len * size_of::<T>()
    }

    pub(super) fn check_len(&self, what: &'static str, found: usize) -> Result<(), DeviceError> {
        if found == self.len {
            return Ok(());
        }
        Err(DeviceError::SliceLength {
            what,
            wanted: self.len as u64,
            found: found as u64,
        })
    }
}

/// Start and length of a range of `0..len`.
pub(super) fn checked_range(
    range: impl RangeBounds<usize>,
    len: usize,
) -> Result<(usize, usize), DeviceError> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(len),
    };
    let (start, end) = (start.unwrap_or(usize::MAX), end.unwrap_or(usize::MAX));
    if start <= end && end <= len {
        return Ok((start, end - start));
    }
    Err(DeviceError::SliceRange {
        start: start as u64,
        end: end as u64,
        len: len as u64,
    })
}

impl<'a, T: Element> From<&'a DeviceBuffer<T>> for DeviceSlice<'a, T> {
    fn from(buffer: &'a DeviceBuffer<T>) -> Self {
        buffer.as_slice()
    }
}

impl<'a, T: Element> From<&'a Rc<DeviceBuffer<T>>> for DeviceSlice<'a, T> {
    fn from(buffer: &'a Rc<DeviceBuffer<T>>) -> Self {
        buffer.as_slice()
    }
}

impl<'a, T: Element> From<&'a Arc<DeviceBuffer<T>>> for DeviceSlice<'a, T> {
    fn from(buffer: &'a Arc<DeviceBuffer<T>>) -> Self {
        buffer.as_slice()
    }
}

impl<'a, T: Element> From<&'a mut DeviceBuffer<T>> for DeviceSlice<'a, T> {
    fn from(buffer: &'a mut DeviceBuffer<T>) -> Self {
        buffer.as_slice()
    }
}

impl<'a, T: Element> From<DeviceSliceMut<'a, T>> for DeviceSlice<'a, T> {
    fn from(slice: DeviceSliceMut<'a, T>) -> Self {
        slice.into_slice()
    }
}

impl<'a, T: Element> From<&'a DeviceSliceMut<'_, T>> for DeviceSlice<'a, T> {
    fn from(slice: &'a DeviceSliceMut<'_, T>) -> Self {
        slice.as_slice()
    }
}

impl<'a, T: Element> From<&DeviceSlice<'a, T>> for DeviceSlice<'a, T> {
    fn from(slice: &DeviceSlice<'a, T>) -> Self {
        *slice
    }
}

impl<T: Element> fmt::Debug for DeviceSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.device.identity();
        write!(f, "DeviceSlice({} x {} on {device})", self.len, T::NAME)
    }
}
