//! Copies of a few bytes to the host, through pinned memory that is kept: the driver takes longer for ordinary memory.

use super::driver::{Context, Event, PinnedBytes, Stream};
use super::{Cuda, CudaQueue};
use crate::device::error::{DeviceError, DriverError};
use std::mem::{self, ManuallyDrop};
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of a small copy.
pub(in crate::device) const SMALL_BYTES: usize = 4096;

/// Pinned memory that no copy uses.
#[derive(Debug)]
pub(super) struct SmallReads(Mutex<Vec<SmallRead>>);

/// A copy that may still run: pinned memory of [`SMALL_BYTES`] bytes, and an event after the copy. If it is dropped,
/// the host waits for the copy.
#[derive(Debug)]
pub(in crate::device) struct SmallRead {
    memory: ManuallyDrop<PinnedBytes>,
    end: Event,
    /// The bytes that the copy brings.
    bytes: usize,
}

impl SmallReads {
    /// With memory for one copy, if the host can pin it. A later allocation could disturb another library that captures
    /// a graph.
    pub fn new(context: &Arc<Context>) -> Self {
        Self(Mutex::new(
            SmallRead::allocate(context).into_iter().collect(),
        ))
    }

    fn unused(&self) -> MutexGuard<'_, Vec<SmallRead>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SmallRead {
    fn allocate(context: &Arc<Context>) -> Result<Self, DriverError> {
        // The memory last: nothing would free it if the event failed.
        let end = Event::new(context)?;
        let memory = ManuallyDrop::new(PinnedBytes::zeros(context, SMALL_BYTES)?);
        Ok(Self {
            memory,
            end,
            bytes: 0,
        })
    }
}

impl Drop for SmallRead {
    fn drop(&mut self) {
        // If that fails, the copy may still run, and its memory is never freed.
        if self.end.synchronize().is_ok() {
            // SAFETY: nobody uses the memory after this.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

impl Cuda {
    /// Copies at most [`SMALL_BYTES`] bytes from the device, after all that was launched before on the stream. Returns
    /// whether it has: not if the host cannot pin more memory.
    ///
    /// # Safety
    ///
    /// The source lies inside one allocation of this device.
    pub unsafe fn read_small(
        &self,
        queue: &CudaQueue,
        from: u64,
        to: &mut [u8],
    ) -> Result<bool, DeviceError> {
        // SAFETY: the caller's contract; the copy is finished here.
        let read = unsafe { self.start_small_read_on(queue.stream(), from, to.len())? };
        let Some(read) = read else {
            return Ok(false);
        };
        self.finish_small_read(read, to)?;
        Ok(true)
    }

    /// Starts a copy as [`read_small`](Self::read_small), on a stream beside this one: what is launched from now on
    /// does not wait for the copy. `None` if the host cannot pin more memory.
    ///
    /// # Safety
    ///
    /// The source lies inside one allocation of this device, and nothing changes or frees it before
    /// [`finish_small_read`](Self::finish_small_read), or before the copy is dropped.
    pub unsafe fn start_small_read(
        &self,
        queue: &CudaQueue,
        from: u64,
        bytes: usize,
    ) -> Result<Option<SmallRead>, DeviceError> {
        let side = self.checked(queue.side_streams())?;
        let beside = self.checked(side.beside(queue.stream()))?;
        // SAFETY: the caller's contract.
        unsafe { self.start_small_read_on(beside, from, bytes) }
    }

    /// Waits for a small copy, then writes its first `to.len()` bytes to `to`.
    pub fn finish_small_read(&self, read: SmallRead, to: &mut [u8]) -> Result<(), DeviceError> {
        self.checked(read.end.synchronize())?;
        assert!(to.len() <= read.bytes, "the copy brings fewer bytes");
        // SAFETY: the memory has so many bytes, each initialised since it was allocated, and the copy is done.
        let bytes = unsafe { slice::from_raw_parts(read.memory.start().as_ptr().cast(), to.len()) };
        to.copy_from_slice(bytes);
        self.small_reads.unused().push(read);
        Ok(())
    }

    /// Starts a copy on a stream, after all that it has so far.
    ///
    /// # Safety
    ///
    /// As for [`start_small_read`](Self::start_small_read).
    unsafe fn start_small_read_on(
        &self,
        stream: &Stream,
        from: u64,
        bytes: usize,
    ) -> Result<Option<SmallRead>, DeviceError> {
        assert!(bytes <= SMALL_BYTES, "a small copy is of few bytes");
        let unused = self.small_reads.unused().pop();
        let Some(mut read) = unused.or_else(|| SmallRead::allocate(&self.context).ok()) else {
            return Ok(None);
        };
        read.bytes = bytes;
        // SAFETY: the caller guarantees that the device's bytes are valid; the memory has room, and it is used again or
        // freed when the copy is done.
        let started = unsafe { stream.copy_from_device(read.memory.start().as_ptr(), from, bytes) };
        if let Err(error) = started.and_then(|()| read.end.record(stream)) {
            if stream.synchronize().is_err() {
                // The copy may still run, so its memory is never freed.
                mem::forget(read);
            }
            return Err(self.driver_error(error));
        }
        Ok(Some(read))
    }
}
