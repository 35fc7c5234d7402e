//! Buffers of device memory.

mod pool;
mod raw_slices;
mod transfer;
pub(super) mod uses;

use super::error::DeviceError;
use super::slice::DeviceSlice;
use super::slice_mut::DeviceSliceMut;
use super::stream::queue::Queue;
use super::{Backend, Device, on_backend};
use cuda_std::element::Element;
use cuda_std::memory::{Global, GlobalMut};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::RangeBounds;
use std::sync::Arc;
use uses::{Access, Uses};

/// Memory of a device for `len` elements, freed when it is dropped, or when the last recording that uses it is. It
/// keeps its device open.
///
/// [`read_only`](Self::read_only) and [`mutable`](Self::mutable) are the pointers for kernels. A buffer of no
/// elements takes no memory and works everywhere.
pub struct DeviceBuffer<T: Element> {
    memory: Arc<Memory>,
    len: usize,
    element: PhantomData<T>,
}

/// An allocation, freed when neither a buffer nor a recording has it.
pub(super) struct Memory {
    /// 0 if it has no bytes.
    pub address: u64,
    uses: ManuallyDrop<Uses>,
    /// Memory that belongs to someone else, and is not freed here.
    lent: Option<Lent>,
    device: Device,
}

/// What happens to memory of someone else in the end.
struct Lent {
    /// The stream on which it was lent: it waits for all others that have used the memory.
    queue: Arc<Queue>,
    /// Dropped then.
    _owner: Box<dyn Any + Send + Sync>,
}

impl<T: Element> DeviceBuffer<T> {
    pub(super) fn allocate(device: &Device, len: usize) -> Result<Self, DeviceError> {
        let size = size_of::<T>();
        // Every buffer can be downloaded, and no slice of the host is longer.
        let bytes = len
            .checked_mul(size)
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or(DeviceError::BufferTooLarge {
                wanted: len as u128 * size as u128,
                most: isize::MAX as u64,
            })?;
        let queue = device.streams.current();
        let address = if bytes == 0 {
            0
        } else {
            device.allocate(&queue, bytes as u64, size as u32)?
        };
        let memory = Memory {
            address,
            uses: ManuallyDrop::new(Uses::new(queue)),
            lent: None,
            device: device.clone(),
        };
        Ok(Self {
            memory: Arc::new(memory),
            len,
            element: PhantomData,
        })
    }

    /// A buffer of memory that belongs to someone else.
    ///
    /// # Safety
    ///
    /// As for [`Device::buffer_from_raw`], whose checks have passed.
    pub(super) unsafe fn lent(
        device: &Device,
        address: u64,
        len: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        let queue = device.streams.current();
        let memory = Memory {
            address,
            uses: ManuallyDrop::new(Uses::new(Arc::clone(&queue))),
            lent: Some(Lent {
                queue,
                _owner: owner,
            }),
            device: device.clone(),
        };
        Self {
            memory: Arc::new(memory),
            len,
            element: PhantomData,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that has the memory.
    pub fn device(&self) -> &Device {
        &self.memory.device
    }

    /// All elements, to be read.
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice {
            device: &self.memory.device,
            memory: Some(&self.memory),
            address: self.memory.address,
            len: self.len,
            is_part: false,
            element: PhantomData,
        }
    }

    /// All elements, to be read and written.
    pub fn as_mut_slice(&mut self) -> DeviceSliceMut<'_, T> {
        // SAFETY: the buffer is borrowed mutably, and its memory is its own.
        unsafe { DeviceSliceMut::new(self.as_slice()) }
    }

    /// A part of the elements, to be read.
    ///
    /// # Errors
    ///
    /// [`DeviceError::SliceRange`] if not all of `range` is in the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>, DeviceError> {
        self.as_slice().slice(range)
    }

    /// A part of the elements, to be read and written.
    ///
    /// # Errors
    ///
    /// [`DeviceError::SliceRange`] if not all of `range` is in the buffer.
    pub fn slice_mut(
        &mut self,
        range: impl RangeBounds<usize>,
    ) -> Result<DeviceSliceMut<'_, T>, DeviceError> {
        self.as_mut_slice().slice(range)
    }

    /// The pointer to the first element, for kernels that read.
    pub fn read_only(&self) -> Global<T> {
        self.as_slice().read_only()
    }

    /// The pointer to the first element, for kernels that write.
    pub fn mutable(&mut self) -> GlobalMut<T> {
        self.as_mut_slice().mutable()
    }

    /// A copy of the elements, as [`DeviceSlice::download`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn download(&self) -> Result<Vec<T>, DeviceError> {
        self.as_slice().download()
    }

    /// Copies the elements to `to`, as [`download`](Self::download) does.
    ///
    /// # Errors
    ///
    /// Those of [`download`](Self::download), and another length than the buffer's.
    pub fn copy_to_slice(&self, to: &mut [T]) -> Result<(), DeviceError> {
        self.as_slice().copy_to_slice(to)
    }

    /// Copies as many elements as `to` has, from number `start` on, as [`download`](Self::download) does.
    ///
    /// # Errors
    ///
    /// Those of [`download`](Self::download); [`DeviceError::SliceRange`] if they are not all elements of the buffer.
    pub fn copy_part_to_slice(&self, start: usize, to: &mut [T]) -> Result<(), DeviceError> {
        let end = start.saturating_add(to.len());
        self.slice(start..end)?.copy_to_slice(to)
    }

    /// Overwrites the elements, after all earlier work of the device. `from` may be changed afterwards.
    ///
    /// # Errors
    ///
    /// Another length than the buffer's; a launch that failed before.
    pub fn copy_from_slice(&mut self, from: &[T]) -> Result<(), DeviceError> {
        self.as_mut_slice().copy_from_slice(from)
    }

    /// Sets all elements to zero, after all earlier work of the device.
    ///
    /// # Errors
    ///
    /// A launch that failed before.
    pub fn fill_zero(&mut self) -> Result<(), DeviceError> {
        self.as_mut_slice().fill_zero()
    }

    /// Sets all bytes to `value`, after all earlier work of the device. With 0xff floating-point elements become NaN.
    ///
    /// # Errors
    ///
    /// A launch that failed before.
    pub fn fill_bytes(&mut self, value: u8) -> Result<(), DeviceError> {
        self.as_mut_slice().fill_bytes(value)
    }

    /// Sets all elements to zero, also while this thread records, and waits until they are.
    pub(super) fn zero_now(&mut self) -> Result<(), DeviceError> {
        let bytes = self.as_slice().bytes();
        if bytes == 0 {
            return Ok(());
        }
        match &*self.device().backend {
            Backend::Emulator(emulator) => emulator.zero(self.memory.address, bytes),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => {
                let queue = self.device().streams.current();
                // SAFETY: the buffer's own memory.
                unsafe { cuda.fill(queue.cuda(), self.memory.address, bytes, 0)? };
                cuda.synchronize(queue.cuda())
            }
        }
    }

    /// Makes elements that no one has written visible on a GPU.
    #[cfg(cuda)]
    pub(super) fn fill_with_ones_on_cuda(&self) -> Result<(), DeviceError> {
        match &*self.device().backend {
            // SAFETY: the buffer's own memory.
            Backend::Cuda(cuda) if !self.is_empty() => unsafe {
                let queue = self.device().streams.current();
                cuda.fill(
                    queue.cuda(),
                    self.memory.address,
                    self.as_slice().bytes(),
                    0xff,
                )
            },
            _ => Ok(()),
        }
    }
}

impl Memory {
    /// Notes that a launch of this thread is about to use the memory: a recording keeps it, or the launch waits for
    /// the work of other streams.
    pub fn use_in_launch(self: &Arc<Self>, access: Access) {
        if !self.device.recordings.keep(self, access) {
            self.use_now(access);
        }
    }

    /// Makes this thread's stream wait for the work of other streams that use the memory.
    pub fn use_now(&self, access: Access) {
        if self.device.streams.are_many() {
            self.uses.order(&self.device.streams.current(), access);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: nobody uses it afterwards.
        let uses = unsafe { ManuallyDrop::take(&mut self.uses) };
        if let Some(lent) = &self.lent {
            uses.into_users().make_wait(&lent.queue);
        } else if self.address != 0 {
            let users = uses.into_users();
            // A failure here is that of an earlier launch, which another call reports.
            let _ = on_backend!(&*self.device.backend, device => device.free(self.address, users));
        }
    }
}

impl<T: Element> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "DeviceBuffer({} x {} on {})",
            self.len,
            T::NAME,
            self.device().identity()
        )
    }
}

/// A buffer's address, null for none.
pub(crate) fn optional_pointer<T: Element>(buffer: Option<&DeviceBuffer<T>>) -> Global<T> {
    buffer.map_or(Global::from_address(0), DeviceBuffer::read_only)
}
