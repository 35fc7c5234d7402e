//! Pinned memory of the host, and copies for which nobody waits.

#[cfg(cuda)]
use super::buffer::uses::Access;
#[cfg(cuda)]
use super::cuda::driver::{Event, PinnedBytes};
use super::error::DeviceError;
use super::slice::DeviceSlice;
use super::slice_mut::DeviceSliceMut;
use super::{Backend, Device};
use cuda_std::element::Element;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::slice;

/// Memory of the host that a GPU copies while the host goes on: a slice of elements. See [`Device::pinned`].
///
/// Copies between ordinary memory and a GPU wait until they are done. Pinned memory is scarce: the operating system
/// cannot move it or swap it out. On an emulator it is ordinary memory.
pub struct PinnedBuffer<T: Element> {
    bytes: HostBytes,
    len: usize,
    element: PhantomData<T>,
}

/// Memory that is initialised, as long as elements need it, and aligned for them.
enum HostBytes {
    /// In units of 16 bytes, the greatest alignment of an element.
    Ordinary(Box<[u128]>),
    #[cfg(cuda)]
    Pinned(PinnedBytes),
}

/// A copy that may still run. It has the pinned buffer until then. See [`DeviceSlice::start_download`] and
/// [`DeviceSliceMut::start_upload`].
///
/// If it is dropped, the host waits for the copy.
#[must_use = "the buffer comes back from `wait`"]
pub struct Transfer<T: Element> {
    /// `None` after `wait`.
    buffer: Option<PinnedBuffer<T>>,
    /// Recorded after the copy.
    #[cfg(cuda)]
    end: Option<Event>,
    device: Device,
}

impl Device {
    /// Pinned memory of the host for `len` elements, which are zero.
    ///
    /// ```
    /// use warprow::Device;
    ///
    /// # fn main() -> Result<(), warprow::Error> {
    /// let device = Device::open()?;
    /// let mut numbers = device.pinned::<u32>(3)?;
    /// numbers.copy_from_slice(&[5, 6, 7]);
    /// let mut buffer = device.zeros::<u32>(3)?;
    /// let upload = buffer.as_mut_slice().start_upload(numbers)?;
    /// // What is launched now comes after the copy, and the host goes on.
    /// let numbers = upload.wait()?;
    /// let download = buffer.as_slice().start_download(numbers)?;
    /// assert_eq!(*download.wait()?, [5, 6, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A host without so much memory to pin; the driver's.
    pub fn pinned<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>, DeviceError> {
        let out_of_memory = || DeviceError::HostOutOfMemory {
            wanted: (len as u64).saturating_mul(size_of::<T>() as u64),
        };
        let bytes = len.checked_mul(size_of::<T>());
        let bytes = bytes.filter(|&bytes| isize::try_from(bytes).is_ok());
        let bytes = bytes.ok_or_else(out_of_memory)?;
        let bytes = match &*self.backend {
            #[cfg(cuda)]
            Backend::Cuda(cuda) if bytes > 0 => HostBytes::Pinned(cuda.pinned(bytes)?),
            _ => {
                let units = bytes.div_ceil(size_of::<u128>());
                let mut zeros = Vec::new();
                zeros
                    .try_reserve_exact(units)
                    .map_err(|_| out_of_memory())?;
                zeros.resize(units, 0);
                HostBytes::Ordinary(zeros.into())
            }
        };
        Ok(PinnedBuffer {
            bytes,
            len,
            element: PhantomData,
        })
    }
}

impl<T: Element> PinnedBuffer<T> {
    fn start(&self) -> *const T {
        match &self.bytes {
            HostBytes::Ordinary(units) => units.as_ptr().cast(),
            #[cfg(cuda)]
            HostBytes::Pinned(bytes) => bytes.start().as_ptr().cast_const().cast(),
        }
    }

    fn start_mut(&mut self) -> *mut T {
        match &mut self.bytes {
            HostBytes::Ordinary(units) => units.as_mut_ptr().cast(),
            #[cfg(cuda)]
            HostBytes::Pinned(bytes) => bytes.start().as_ptr().cast(),
        }
    }
}

impl<T: Element> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory is aligned and has `len` elements, each initialised: zero bits are a value of every
        // element type. No copy runs: a transfer would have the buffer.
        unsafe { slice::from_raw_parts(self.start(), self.len) }
    }
}

impl<T: Element> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and the buffer is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.start_mut(), self.len) }
    }
}

impl<T: Element> DeviceSlice<'_, T> {
    /// Starts to copy the elements to pinned memory, after all earlier work of this thread's stream and of streams that
    /// have written the elements. It does not wait; the transfer gives the buffer back when the copy is done.
    ///
    /// # Errors
    ///
    /// Another length than the slice's; a launch that failed before; on an emulator with full checks, an element that
    /// no one has written. The buffer is dropped then.
    pub fn start_download(&self, mut to: PinnedBuffer<T>) -> Result<Transfer<T>, DeviceError> {
        self.check_len("the pinned buffer to copy to", to.len())?;
        if to.is_empty() {
            return Transfer::done(self.device(), to);
        }
        match &*self.device().backend {
            Backend::Emulator(_) => {
                self.copy_to_slice(&mut to)?;
                Transfer::done(self.device(), to)
            }
            #[cfg(cuda)]
            Backend::Cuda(cuda) => {
                (self.device().recordings).refuse("a copy from the device")?;
                self.use_now(Access::Read);
                let queue = self.device().streams.current();
                let (start, bytes) = (to.start_mut().cast(), self.bytes());
                // SAFETY: the slice's own memory, as long as `to`, whose memory the transfer keeps until the copy is
                // done.
                let end = unsafe { cuda.start_read(queue.cuda(), self.address(), start, bytes)? };
                Ok(Transfer::started(self.device(), to, end))
            }
        }
    }
}

impl<T: Element> DeviceSliceMut<'_, T> {
    /// Starts to overwrite the elements with those of pinned memory, after all earlier work of this thread's stream and
    /// of streams that use the elements. It does not wait; the transfer gives the buffer back when the copy is done.
    ///
    /// # Errors
    ///
    /// Another length than the slice's; a launch that failed before. The buffer is dropped then.
    pub fn start_upload(&mut self, from: PinnedBuffer<T>) -> Result<Transfer<T>, DeviceError> {
        let slice = self.as_slice();
        slice.check_len("the pinned buffer to copy from", from.len())?;
        if from.is_empty() {
            return Transfer::done(self.device(), from);
        }
        match &*self.device().backend {
            Backend::Emulator(_) => {
                self.copy_from_slice(&from)?;
                Transfer::done(self.device(), from)
            }
            #[cfg(cuda)]
            Backend::Cuda(cuda) => {
                (self.device().recordings).refuse("a copy to the device")?;
                slice.use_now(self.write());
                let queue = self.device().streams.current();
                let (start, bytes) = (from.start().cast(), slice.bytes());
                // SAFETY: the slice's own memory, as long as `from`, whose memory the transfer keeps until the copy is
                // done.
                let end = unsafe { cuda.start_write(queue.cuda(), self.address(), start, bytes)? };
                Ok(Transfer::started(self.device(), from, end))
            }
        }
    }
}

impl<T: Element> Transfer<T> {
    /// A transfer that has nothing to wait for.
    fn done(device: &Device, buffer: PinnedBuffer<T>) -> Result<Self, DeviceError> {
        Ok(Self {
            buffer: Some(buffer),
            #[cfg(cuda)]
            end: None,
            device: device.clone(),
        })
    }

    #[cfg(cuda)]
    fn started(device: &Device, buffer: PinnedBuffer<T>, end: Event) -> Self {
        Self {
            buffer: Some(buffer),
            end: Some(end),
            device: device.clone(),
        }
    }

    /// Whether the copy is done.
    ///
    /// # Errors
    ///
    /// A launch that failed before.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        match &*self.device.backend {
            Backend::Emulator(_) => Ok(true),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.is_done(self.end.as_ref()),
        }
    }

    /// Waits until the copy is done, and gives the buffer back.
    ///
    /// # Errors
    ///
    /// A launch that failed before.
    pub fn wait(mut self) -> Result<PinnedBuffer<T>, DeviceError> {
        self.finish()?;
        Ok(self.buffer.take().expect("nobody else takes it"))
    }

    fn finish(&self) -> Result<(), DeviceError> {
        match &*self.device.backend {
            Backend::Emulator(_) => Ok(()),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.wait_for(self.end.as_ref()),
        }
    }
}

impl<T: Element> Drop for Transfer<T> {
    fn drop(&mut self) {
        if self.buffer.is_some() {
            // If that fails, the context is lost, and no copy runs any more.
            let _ = self.finish();
        }
    }
}

impl<T: Element> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedBuffer({} x {})", self.len, T::NAME)
    }
}

impl<T: Element> fmt::Debug for Transfer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transfer({:?})", self.buffer)
    }
}
