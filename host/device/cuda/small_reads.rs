//! Copies of a few bytes to the host, through pinned memory that is kept: the driver takes longer for ordinary memory.

use super::driver::{Event, PinnedBytes, Stream};
use super::{Cuda, CudaQueue};
use crate::device::error::DeviceError;
use std::slice;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most bytes of a small copy.
pub(in crate::device) const SMALL_BYTES: usize = 4096;

/// Pinned memory that no copy uses.
#[derive(Debug, Default)]
pub(super) struct SmallReads(Mutex<Vec<SmallRead>>);

/// Pinned memory of [`SMALL_BYTES`] bytes to which a copy may still run, and an event after the copy.
#[derive(Debug)]
pub(in crate::device) struct SmallRead {
    memory: PinnedBytes,
    end: Event,
}

impl Cuda {
    /// Copies at most [`SMALL_BYTES`] bytes from the device, after all that was launched before on the stream.
    ///
    /// # Safety
    ///
    /// The source lies inside one allocation of this device.
    pub unsafe fn read_small(
        &self,
        queue: &CudaQueue,
        from: u64,
        to: &mut [u8],
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller's contract; the copy is finished here.
        let read = unsafe { self.start_small_read_on(queue.stream(), from, to.len())? };
        self.finish_small_read(read, to)
    }

    /// Starts a copy as [`read_small`](Self::read_small), on a stream beside this one: what is launched from now on
    /// does not wait for the copy.
    ///
    /// # Safety
    ///
    /// The source lies inside one allocation of this device, and nothing changes or frees it before
    /// [`finish_small_read`](Self::finish_small_read).
    pub unsafe fn start_small_read(
        &self,
        queue: &CudaQueue,
        from: u64,
        bytes: usize,
    ) -> Result<SmallRead, DeviceError> {
        let side = self.checked(queue.side_streams())?;
        let beside = self.checked(side.beside(queue.stream()))?;
        // SAFETY: the caller's contract.
        unsafe { self.start_small_read_on(beside, from, bytes) }
    }

    /// Waits until a small copy is done, and copies what it has brought to `to`, or the first bytes of that.
    pub fn finish_small_read(&self, read: SmallRead, to: &mut [u8]) -> Result<(), DeviceError> {
        assert!(to.len() <= SMALL_BYTES, "no small copy has so many bytes");
        self.checked(read.end.synchronize())?;
        // SAFETY: the memory has so many bytes, each initialised since it was allocated, and the copy is done.
        let bytes = unsafe { slice::from_raw_parts(read.memory.start().as_ptr().cast(), to.len()) };
        to.copy_from_slice(bytes);
        self.unused().push(read);
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`start_small_read`](Self::start_small_read).
    unsafe fn start_small_read_on(
        &self,
        stream: &Stream,
        from: u64,
        bytes: usize,
    ) -> Result<SmallRead, DeviceError> {
        assert!(bytes <= SMALL_BYTES, "a small copy is of few bytes");
        let unused = self.unused().pop();
        let read = match unused {
            Some(read) => read,
            None => SmallRead {
                memory: self.pinned(SMALL_BYTES)?,
                end: self.checked(Event::new(&self.context))?,
            },
        };
        // SAFETY: the caller guarantees that the device's bytes are valid; the memory has room, and it is used again or
        // freed after the copy.
        let started = unsafe { stream.copy_from_device(read.memory.start().as_ptr(), from, bytes) };
        if let Err(error) = started.and_then(|()| read.end.record(stream)) {
            // The copy may have begun. If this fails too, the context is lost.
            let _ = stream.synchronize();
            return Err(self.driver_error(error));
        }
        Ok(read)
    }

    fn unused(&self) -> MutexGuard<'_, Vec<SmallRead>> {
        let unused = self.small_reads.0.lock();
        unused.unwrap_or_else(PoisonError::into_inner)
    }
}
