//! The CUDA back end: a GPU through `cust`.
//!
//! Each device has a stream of its own, and others beside it if they are wanted; what touches memory names its stream.
//! Contexts are current for a thread, so each function makes the device's context current first: a few nanoseconds if
//! it is already.

mod allocation;
mod archives;
pub(super) mod driver;
mod events;
mod forks;
mod memory_pool;
mod module;
mod occupancy;
mod open;
mod peer;
mod profiler;
mod ptx;
mod queue;
mod recording;
mod side_streams;
mod small_reads;
mod transfers;

use super::buffer::uses::Users;
use super::error::{DeviceError, DriverError};
use super::launches::reports::ModuleLoad;
use super::profile::DeviceProfile;
use super::properties::limits::{self, KernelLimits};
use super::properties::{MemoryInfo, Properties};
use super::stream::queue::Queue;
use cuda_std::launch::LaunchConfig;
use cust::error::{CudaError, CudaResult};
use driver::{Context, Stream};
pub(super) use events::Events;
use memory_pool::MemoryPool;
use module::{EntryPoint, Modules};
pub(super) use queue::CudaQueue;
pub(super) use recording::{CudaGraph, CudaRecording};
use small_reads::SmallReads;
pub(super) use small_reads::{SMALL_BYTES, SmallRead};
use std::any::Any;
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// A GPU. The order of the fields is that in which they are dropped.
#[derive(Debug)]
pub(super) struct Cuda {
    identity: String,
    properties: Properties,
    modules: Modules,
    /// The kernel launched last, for the message when a later call reports its failure.
    last_kernel: Mutex<Option<Arc<str>>>,
    /// Freed memory for later allocations.
    pool: Mutex<MemoryPool<Users>>,
    /// The greatest size of the pool, in bytes.
    pool_limit: AtomicU64,
    small_reads: SmallReads,
    own: Arc<Queue>,
    context: Arc<Context>,
}

impl Cuda {
    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Takes the rates of a profile, if it is one of this GPU.
    pub fn take_rates_of(&mut self, profile: &DeviceProfile) {
        if profile.name == self.properties.name {
            self.properties.rates = Some(profile.rates);
        }
    }

    /// The device's own stream.
    pub fn own_queue(&self) -> Arc<Queue> {
        Arc::clone(&self.own)
    }

    /// Another stream.
    pub fn new_queue(&self) -> Result<CudaQueue, DeviceError> {
        let stream = self.checked(Stream::new(&self.context))?;
        Ok(CudaQueue::new(stream))
    }

    /// A stream of someone else.
    ///
    /// # Safety
    ///
    /// The stream is of this context, and lives as long as `owner` or as it is used here.
    pub unsafe fn queue_of(
        &self,
        stream: *mut c_void,
        owner: Box<dyn Any + Send + Sync>,
    ) -> CudaQueue {
        // SAFETY: the caller's contract.
        CudaQueue::new(unsafe { Stream::borrowed(stream, &self.context, owner) })
    }

    /// Lends a stream of someone else once more, whose new owner keeps it alive from now on.
    pub fn lend_again(
        &self,
        queue: &CudaQueue,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<(), DeviceError> {
        self.checked(queue.lend_again(owner))
    }

    /// Copies to the device; `bytes` may be changed afterwards.
    ///
    /// # Safety
    ///
    /// The destination lies inside one allocation of this device.
    pub unsafe fn write(
        &self,
        queue: &CudaQueue,
        address: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let from = bytes.as_ptr().cast();
        // SAFETY: the caller guarantees that the device's bytes lie inside one allocation. `bytes` outlives the copy,
        // because `synchronize` waits for the stream.
        let copied = unsafe { queue.stream().copy_to_device(address, from, bytes.len()) };
        // Waited for in any case: the copy may have begun.
        let done = self.synchronize(queue);
        self.checked(copied)?;
        done
    }

    /// Copies from the device, after all that was launched before on the stream.
    ///
    /// # Safety
    ///
    /// The source lies inside one allocation of this device.
    pub unsafe fn read(
        &self,
        queue: &CudaQueue,
        address: u64,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller's contract.
        if bytes.len() <= SMALL_BYTES && unsafe { self.read_small(queue, address, bytes)? } {
            return Ok(());
        }
        let to = bytes.as_mut_ptr().cast();
        // SAFETY: the caller guarantees that the device's bytes lie inside one allocation. `bytes` outlives the copy,
        // because `synchronize` waits for the stream.
        let copied = unsafe { queue.stream().copy_from_device(to, address, bytes.len()) };
        // Waited for in any case: the copy may have begun.
        let done = self.synchronize(queue);
        self.checked(copied)?;
        done
    }

    /// Sets bytes to `value`, after all that was launched before on the stream.
    ///
    /// # Safety
    ///
    /// The bytes lie inside one allocation of this device.
    pub unsafe fn fill(
        &self,
        queue: &CudaQueue,
        address: u64,
        bytes: usize,
        value: u8,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller guarantees that the bytes lie inside one allocation.
        self.checked(unsafe { queue.stream().fill(address, bytes, value) })
    }

    pub fn load_ptx(&self, ptx: &str) -> Result<(), DeviceError> {
        self.enter()?;
        self.modules.load(ptx)
    }

    pub fn load_kernels(&self, archive: ptx_archive::Archive) {
        self.modules.load_archive(archive);
    }

    pub fn module_loads(&self) -> Vec<ModuleLoad> {
        self.modules.loads()
    }

    /// # Safety
    ///
    /// The pointers are to the arguments of the entry point `kernel`, with its types, and the kernel's own contract
    /// holds.
    pub unsafe fn launch(
        &self,
        queue: &CudaQueue,
        kernel: &str,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<(), DeviceError> {
        // SAFETY: `launch_on` requires of its caller what this function requires.
        unsafe { self.launch_on(queue.stream(), kernel, config, arguments) }
    }

    /// Launches on a stream.
    ///
    /// # Safety
    ///
    /// As for [`launch`](Self::launch).
    unsafe fn launch_on(
        &self,
        stream: &Stream,
        kernel: &str,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<(), DeviceError> {
        let entry_point = self.prepare(kernel, config)?;
        *self.last_kernel() = Some(Arc::clone(&entry_point.name));
        let (function, waits) = (&entry_point.function, entry_point.waits);
        // SAFETY: the caller guarantees that the pointers are to arguments of the entry point's types, and the kernel's
        // contract. `waits` is true only for kernels whose text begins with the wait.
        self.checked(unsafe { stream.launch(function, config, arguments, waits) })
    }

    /// The entry point, compiled and allowed its shared memory, for a launch that the device can do.
    fn prepare(&self, kernel: &str, config: &LaunchConfig) -> Result<Arc<EntryPoint>, DeviceError> {
        self.enter()?;
        let entry_point = self.modules.entry_point(kernel)?;
        self.check_limits(&entry_point.name, config, entry_point.resources)?;
        entry_point
            .allow_shared(
                config.shared_bytes,
                self.properties.max_shared_bytes_per_block,
            )
            .map_err(|error| self.driver_error(error))?;
        Ok(entry_point)
    }

    /// Waits until all work of a stream is done.
    pub fn synchronize(&self, queue: &CudaQueue) -> Result<(), DeviceError> {
        self.checked(queue.synchronize())
    }

    pub fn memory(&self) -> Result<MemoryInfo, DeviceError> {
        self.enter()?;
        let (free, total) =
            self.check("tell how much memory is free", cust::memory::mem_get_info())?;
        Ok(MemoryInfo {
            // The pool is freed if memory runs out.
            free: free as u64 + self.pool().bytes(),
            total: total as u64,
        })
    }

    /// The driver's handle of a stream, for a library that launches kernels of its own.
    pub fn raw_stream(&self, queue: &CudaQueue) -> Result<*mut c_void, DeviceError> {
        self.enter()?;
        Ok(queue.stream().as_raw().cast())
    }

    /// The driver's handle of the context.
    pub fn raw_context(&self) -> *mut c_void {
        self.context.as_raw()
    }

    /// Makes the device's context current on this thread.
    pub fn enter(&self) -> Result<(), DeviceError> {
        self.checked(self.context.make_current())
    }

    fn check_limits(
        &self,
        kernel: &str,
        config: &LaunchConfig,
        resources: KernelLimits,
    ) -> Result<(), DeviceError> {
        limits::check(config, &self.properties, resources).map_err(|exceeded| {
            DeviceError::LaunchLimit {
                kernel: kernel.to_owned(),
                device: self.properties.name.clone(),
                exceeded,
            }
        })
    }

    fn checked<T>(&self, result: Result<T, DriverError>) -> Result<T, DeviceError> {
        result.map_err(|error| self.driver_error(error))
    }

    fn check<T>(&self, action: &'static str, result: CudaResult<T>) -> Result<T, DeviceError> {
        result.map_err(|error| self.failed(action, error))
    }

    fn failed(&self, action: &'static str, error: CudaError) -> DeviceError {
        self.driver_error(driver::describe(action, error))
    }

    fn driver_error(&self, error: DriverError) -> DeviceError {
        let device = self.properties.name.clone();
        let error = Box::new(error);
        if is_sticky(error.code) {
            let kernel = self.last_kernel().as_deref().map(str::to_owned);
            return DeviceError::ContextLost {
                device,
                kernel,
                error,
            };
        }
        DeviceError::Driver { device, error }
    }

    fn last_kernel(&self) -> std::sync::MutexGuard<'_, Option<Arc<str>>> {
        self.last_kernel
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // Modules are destroyed next and need their context; no kernel of theirs runs then. If that fails, the context
        // is lost, and they with it.
        let _ = self.own.cuda().synchronize();
        let _ = self.free_pool();
        let _ = self.enter();
    }
}

/// Whether every later call in this context fails with the same error.
fn is_sticky(code: u32) -> bool {
    [
        CudaError::EccUncorrectable,
        CudaError::NvlinkUncorrectable,
        CudaError::IllegalAddress,
        CudaError::LaunchTimeout,
        CudaError::AssertError,
        CudaError::HardwareStackError,
        CudaError::IllegalInstruction,
        CudaError::MisalignedAddress,
        CudaError::InvalidAddressSpace,
        CudaError::InvalidProgramCounter,
        CudaError::LaunchFailed,
    ]
    .iter()
    .any(|&sticky| sticky as u32 == code)
}
