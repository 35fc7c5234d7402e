//! Buffers of device memory.

use super::error::DeviceError;
use super::{Backend, Device, on_backend};
use cuda_std::element::Element;
use cuda_std::memory::{Global, GlobalMut};
use std::fmt;
use std::marker::PhantomData;
use std::slice;
use std::sync::Arc;

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
    device: Device,
    /// 0 if it has no bytes.
    pub address: u64,
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
        let address = if bytes == 0 {
            0
        } else {
            device.allocate(bytes as u64, size as u32)?
        };
        let device = device.clone();
        Ok(Self {
            memory: Arc::new(Memory { device, address }),
            len,
            element: PhantomData,
        })
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

    /// The pointer to the first element, for kernels that read.
    pub fn read_only(&self) -> Global<T> {
        Global::from_address(self.address_for_kernels())
    }

    /// The pointer to the first element, for kernels that write.
    pub fn mutable(&mut self) -> GlobalMut<T> {
        GlobalMut::from_address(self.address_for_kernels())
    }

    /// The address; a recording of this thread keeps the memory from now on.
    fn address_for_kernels(&self) -> u64 {
        self.device().recordings.keep(&self.memory);
        self.memory.address
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
    /// Those of [`download`](Self::download), and another length than the buffer's.
    pub fn copy_to_slice(&self, to: &mut [T]) -> Result<(), DeviceError> {
        self.check_len("the slice to copy to", to.len())?;
        self.copy_part_to_slice(0, to)
    }

    /// Copies as many elements as `to` has, from number `start` on, as [`download`](Self::download) does.
    ///
    /// # Errors
    ///
    /// Those of [`download`](Self::download).
    ///
    /// # Panics
    ///
    /// If they are not all elements of the buffer.
    pub fn copy_part_to_slice(&self, start: usize, to: &mut [T]) -> Result<(), DeviceError> {
        assert!(
            start <= self.len && to.len() <= self.len - start,
            "{} elements from number {start} on are not all in a buffer of {}",
            to.len(),
            self.len
        );
        if to.is_empty() {
            return Ok(());
        }
        self.device().recordings.refuse("a copy from the device")?;
        // Inside the allocation, whose size in bytes fits.
        let address = self.memory.address + (start * size_of::<T>()) as u64;
        // SAFETY: the slice's own bytes; every pattern of bits is a value of an element type.
        let bytes =
            unsafe { slice::from_raw_parts_mut(to.as_mut_ptr().cast::<u8>(), size_of_val(to)) };
        match &*self.device().backend {
            Backend::Emulator(emulator) => emulator.read(address, bytes),
            #[cfg(cuda)]
            // SAFETY: the buffer's own memory, in which the slice's length was checked to lie.
            Backend::Cuda(cuda) => unsafe { cuda.read(address, bytes) },
        }
    }

    /// Overwrites the elements, after all earlier work of the device. `from` may be changed afterwards.
    ///
    /// # Errors
    ///
    /// Another length than the buffer's; a launch that failed before.
    pub fn copy_from_slice(&mut self, from: &[T]) -> Result<(), DeviceError> {
        self.check_len("the slice to copy from", from.len())?;
        if self.is_empty() {
            return Ok(());
        }
        self.device().recordings.refuse("a copy to the device")?;
        // SAFETY: the slice's own bytes: elements are integers and floats, without padding.
        let bytes = unsafe { slice::from_raw_parts(from.as_ptr().cast::<u8>(), size_of_val(from)) };
        match &*self.device().backend {
            Backend::Emulator(emulator) => emulator.write(self.memory.address, bytes),
            #[cfg(cuda)]
            // SAFETY: the buffer's own memory, which has the slice's length.
            Backend::Cuda(cuda) => unsafe { cuda.write(self.memory.address, bytes) },
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
        let bytes = self.bytes();
        match &*self.device().backend {
            Backend::Emulator(emulator) => emulator.zero(self.memory.address, bytes),
            #[cfg(cuda)]
            // SAFETY: the buffer's own memory.
            Backend::Cuda(cuda) => unsafe { cuda.fill(self.memory.address, bytes, 0) },
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
        let bytes = self.bytes();
        match &*self.device().backend {
            Backend::Emulator(emulator) => emulator.fill(self.memory.address, bytes, value),
            #[cfg(cuda)]
            // SAFETY: the buffer's own memory.
            Backend::Cuda(cuda) => unsafe { cuda.fill(self.memory.address, bytes, value) },
        }
    }

    /// Makes elements that no one has written visible on a GPU.
    #[cfg(cuda)]
    pub(super) fn fill_with_ones_on_cuda(&self) -> Result<(), DeviceError> {
        match &*self.device().backend {
            // SAFETY: the buffer's own memory.
            Backend::Cuda(cuda) if !self.is_empty() => unsafe {
                cuda.fill(self.memory.address, self.bytes(), 0xff)
            },
            _ => Ok(()),
        }
    }

    /// The address of the first element; 0 without elements.
    pub(super) fn address(&self) -> u64 {
        self.memory.address
    }

    fn bytes(&self) -> usize {
        // `allocate` has checked that it fits.
        self.len * size_of::<T>()
    }

    fn check_len(&self, what: &'static str, found: usize) -> Result<(), DeviceError> {
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

impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0 {
            // A failure here is that of an earlier launch, which another call reports.
            let _ = on_backend!(&*self.device.backend, device => device.free(self.address));
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
