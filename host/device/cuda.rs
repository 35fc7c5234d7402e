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
mod profiler;
mod ptx;
mod queue;
mod recording;
mod side_streams;

use super::error::{CudaUnavailable, DeviceError, DriverError};
use super::identity;
use super::limits::{self, KernelLimits};
use super::properties::{MemoryInfo, Properties, Version};
use super::queue::Queue;
use super::reports::ModuleLoad;
use super::uses::Users;
use cuda_std::launch::LaunchConfig;
use cust::CudaApiVersion;
use cust::device::{Device, DeviceAttribute};
use cust::error::{CudaError, CudaResult};
use cust::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
use driver::{Context, Stream};
pub(super) use events::Events;
use memory_pool::MemoryPool;
use module::{EntryPoint, Modules};
pub(super) use queue::CudaQueue;
pub(super) use recording::{CudaGraph, CudaRecording};
use std::any::Any;
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// The least compute capability: the kernels' PTX is for `sm_80`.
const OLDEST: Version = Version::new(8, 0);

/// Unless another limit is set, the pool holds at most the device's memory divided by this.
const POOL_PARTS: u64 = 4;

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
    own: Arc<Queue>,
    context: Arc<Context>,
}

impl Cuda {
    /// The device with that ordinal, of those that `CUDA_VISIBLE_DEVICES` leaves.
    pub fn open(ordinal: u32) -> Result<Self, CudaUnavailable> {
        load_driver()?;
        let device = device(ordinal)?;
        let wanted = Wanted::new(device)?;
        let context = Arc::new(Context::primary(device)?);
        let stream = Stream::blocking(&context)?;
        Ok(wanted.in_context(ordinal, context, stream))
    }

    /// The device of a context of someone else, with a stream of someone else as its own. Neither is destroyed.
    ///
    /// # Safety
    ///
    /// Context and stream live as long as `owner`, and the stream is of the context.
    pub unsafe fn of_context(
        context: *mut c_void,
        stream: *mut c_void,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Self, CudaUnavailable> {
        load_driver()?;
        driver::initialise()?;
        // SAFETY: the caller's contract.
        let context = Arc::new(unsafe { Context::borrowed(context, owner) });
        let ordinal = context.ordinal()?;
        let wanted = Wanted::new(device(ordinal)?)?;
        // SAFETY: the caller's contract; the stream keeps the context, and that its owner.
        let stream = unsafe { Stream::borrowed(stream, &context) };
        Ok(wanted.in_context(ordinal, context, stream))
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub fn properties(&self) -> &Properties {
        &self.properties
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
    /// The stream is of this context, and lives as long as it is used here.
    pub unsafe fn queue_of(&self, stream: *mut c_void) -> CudaQueue {
        // SAFETY: the caller's contract.
        CudaQueue::new(unsafe { Stream::borrowed(stream, &self.context) })
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
        // SAFETY: the caller guarantees that the pointers are to arguments of the entry point's types, and the kernel's
        // contract.
        self.checked(unsafe { stream.launch(&entry_point.function, config, arguments) })
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

/// The properties of a device on which the kernels run.
struct Wanted(Properties, Version);

impl Wanted {
    fn new(device: Device) -> Result<Self, CudaUnavailable> {
        let properties = properties(device)
            .map_err(|error| driver::describe("tell a device's properties", error))?;
        let opt_in = driver::device_attribute(
            device,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?;
        let driver_version = driver_version()?;
        let properties = Properties {
            max_shared_bytes_per_block: count(opt_in),
            driver: Some(driver_version),
            ..properties
        };
        if properties.compute_capability < OLDEST {
            return Err(CudaUnavailable::TooOld {
                device: properties.name,
                found: properties.compute_capability,
                wanted: OLDEST,
            });
        }
        ptx::check_driver(archives::least_version(), driver_version)?;
        Ok(Self(properties, driver_version))
    }

    fn in_context(self, ordinal: u32, context: Arc<Context>, stream: Stream) -> Cuda {
        let Self(properties, driver) = self;
        Cuda {
            identity: identity::of_cuda(ordinal, &properties.name),
            modules: Modules::new(
                properties.name.clone(),
                properties.compute_capability,
                driver,
            ),
            pool_limit: AtomicU64::new(properties.memory_bytes.unwrap_or(0) / POOL_PARTS),
            properties,
            last_kernel: Mutex::new(None),
            pool: Mutex::default(),
            own: Queue::of_cuda(CudaQueue::new(stream)),
            context,
        }
    }
}

/// Without the library no function of `cust` may be called.
fn load_driver() -> Result<(), CudaUnavailable> {
    libcuda::load().map_err(|error| CudaUnavailable::NoDriver {
        reason: error.to_string(),
    })?;
    Ok(())
}

fn device(ordinal: u32) -> Result<Device, CudaUnavailable> {
    let visible =
        std::env::var_os("CUDA_VISIBLE_DEVICES").map(|value| value.to_string_lossy().into_owned());
    match driver::initialise() {
        Ok(()) => {}
        Err(error) if error.code == CudaError::NoDevice as u32 => {
            return Err(CudaUnavailable::NoDevice { visible });
        }
        Err(error) => return Err(error.into()),
    }
    let count = Device::num_devices().map_err(|error| driver::describe("count devices", error))?;
    if count == 0 {
        return Err(CudaUnavailable::NoDevice { visible });
    }
    if ordinal >= count {
        return Err(CudaUnavailable::NoSuchOrdinal {
            ordinal,
            count,
            visible,
        });
    }
    let device = Device::get_device(ordinal);
    Ok(device.map_err(|error| driver::describe("find a device", error))?)
}

fn driver_version() -> Result<Version, DriverError> {
    let version = CudaApiVersion::get()
        .map_err(|error| driver::describe("tell the driver's version", error))?;
    Ok(Version::new(count(version.major()), count(version.minor())))
}

/// All properties that `cust` can tell.
fn properties(device: Device) -> CudaResult<Properties> {
    use DeviceAttribute as A;
    let attribute = |attribute| device.get_attribute(attribute).map(count);
    let shared_bytes_per_block = attribute(A::MaxSharedMemoryPerBlock)?;
    Ok(Properties {
        name: device.name()?,
        compute_capability: Version::new(
            attribute(A::ComputeCapabilityMajor)?,
            attribute(A::ComputeCapabilityMinor)?,
        ),
        driver: None,
        multiprocessors: attribute(A::MultiprocessorCount)?,
        l2_bytes: Some(attribute(A::L2CacheSize)?.into()),
        memory_bytes: Some(device.total_memory()? as u64),
        max_threads_per_block: attribute(A::MaxThreadsPerBlock)?,
        max_block: [
            attribute(A::MaxBlockDimX)?,
            attribute(A::MaxBlockDimY)?,
            attribute(A::MaxBlockDimZ)?,
        ],
        max_grid: [
            attribute(A::MaxGridDimX)?,
            attribute(A::MaxGridDimY)?,
            attribute(A::MaxGridDimZ)?,
        ],
        shared_bytes_per_block,
        max_shared_bytes_per_block: shared_bytes_per_block,
    })
}

/// The driver counts in signed integers, and nothing that it counts is negative.
fn count(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
