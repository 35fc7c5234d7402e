//! Streams: made here, or of someone else.

use super::check;
use super::context::Context;
use super::dependent;
use crate::device::error::DriverError;
use cuda_std::launch::LaunchConfig;
use cust::function::Function;
use cust::sys::{self, CUstream, CUstream_flags};
use std::any::Any;
use std::ffi::{c_uint, c_void};
use std::fmt;
use std::mem;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

/// A stream in a context. Every function makes the context current.
pub(in crate::device) struct Stream {
    raw: CUstream,
    /// What keeps a stream of someone else alive; `None` for one that was made here.
    owners: Option<Mutex<Vec<Box<dyn Any + Send + Sync>>>>,
    context: Arc<Context>,
}

// SAFETY: the driver orders what is done with a stream, from whatever threads it comes.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream that does not wait for the legacy default stream.
    pub fn new(context: &Arc<Context>) -> Result<Self, DriverError> {
        Self::with_flags(context, CUstream_flags::CU_STREAM_NON_BLOCKING)
    }

    /// A stream that also waits for the legacy default stream, which waits for it.
    pub fn blocking(context: &Arc<Context>) -> Result<Self, DriverError> {
        Self::with_flags(context, CUstream_flags::CU_STREAM_DEFAULT)
    }

    fn with_flags(context: &Arc<Context>, flags: CUstream_flags) -> Result<Self, DriverError> {
        context.make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the driver writes one pointer. The priority is the default one.
        check("create a stream", unsafe {
            sys::cuStreamCreateWithPriority(&raw mut raw, flags as c_uint, 0)
        })?;
        Ok(Self {
            raw,
            owners: None,
            context: Arc::clone(context),
        })
    }

    /// A stream of someone else, which is not destroyed here.
    ///
    /// # Safety
    ///
    /// The stream is of this context, and lives as long as `owner` or as it is used here.
    pub unsafe fn borrowed(
        raw: *mut c_void,
        context: &Arc<Context>,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Self {
            raw: raw.cast(),
            owners: Some(Mutex::new(vec![owner])),
            context: Arc::clone(context),
        }
    }

    /// Whether it is of someone else.
    pub fn is_borrowed(&self) -> bool {
        self.owners.is_some()
    }

    /// Adds what keeps a stream of someone else alive. The former owners are dropped, unless handles of theirs are
    /// left.
    pub fn add_owner(&self, new: Box<dyn Any + Send + Sync>, has_handles: bool) {
        let Some(owners) = &self.owners else {
            return;
        };
        let mut owners = owners.lock().unwrap_or_else(PoisonError::into_inner);
        let former = match has_handles {
            true => Vec::new(),
            false => mem::take(&mut *owners),
        };
        owners.push(new);
        // What they do when they are dropped may use the stream.
        drop(owners);
        drop(former);
    }

    pub fn as_raw(&self) -> CUstream {
        self.raw
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Waits until all work in the stream is done.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: the stream is alive.
        let result = unsafe { sys::cuStreamSynchronize(self.raw) };
        check("finish what was launched", result)
    }

    /// Launches a kernel; the driver copies the arguments before it returns. With `waits` its blocks may start before
    /// the launch before it has ended.
    ///
    /// # Safety
    ///
    /// The pointers are to the function's arguments, with its types, and the kernel's own contract holds. With `waits`
    /// the kernel waits for the launch before it.
    pub unsafe fn launch(
        &self,
        function: &Function<'_>,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
        waits: bool,
    ) -> Result<(), DriverError> {
        let LaunchConfig { grid, block, .. } = config;
        // SAFETY: function and stream are alive; the rest is the caller's contract. The driver does not write to the
        // list of arguments.
        let result = unsafe {
            if waits {
                dependent::launch(self.raw, function.to_raw(), config, arguments)
            } else {
                sys::cuLaunchKernel(
                    function.to_raw(),
                    grid.x,
                    grid.y,
                    grid.z,
                    block.x,
                    block.y,
                    block.z,
                    config.shared_bytes,
                    self.raw,
                    arguments.as_ptr().cast_mut(),
                    ptr::null_mut(),
                )
            }
        };
        check("launch a kernel", result)
    }

    /// Begins a copy to the device.
    ///
    /// # Safety
    ///
    /// Both ranges are valid until the copy is done, and nobody changes the host's bytes before.
    pub unsafe fn copy_to_device(
        &self,
        to: u64,
        from: *const c_void,
        bytes: usize,
    ) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: the caller's contract.
        let result = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, bytes, self.raw) };
        check("copy to the device", result)
    }

    /// Begins a copy from the device.
    ///
    /// # Safety
    ///
    /// Both ranges are valid until the copy is done, and nobody uses the host's bytes before.
    pub unsafe fn copy_from_device(
        &self,
        to: *mut c_void,
        from: u64,
        bytes: usize,
    ) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: the caller's contract.
        let result = unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, bytes, self.raw) };
        check("copy from the device", result)
    }

    /// Sets bytes of the device.
    ///
    /// # Safety
    ///
    /// The bytes lie inside one allocation.
    pub unsafe fn fill(&self, address: u64, bytes: usize, value: u8) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: the caller's contract.
        let result = unsafe { sys::cuMemsetD8Async(address, value, bytes, self.raw) };
        check("set device memory", result)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({:?} in {:?})", self.raw, self.context)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.owners.is_none() {
            // If that fails, the context is lost, and the stream with it.
            let _ = self.context.make_current();
            // SAFETY: the stream was made here; the driver finishes its work first.
            unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}
