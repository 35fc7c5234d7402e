//! The CUDA back end: a GPU through `cust`.
//!
//! Each device has a stream of its own, and everything that touches its memory is ordered by that stream. `cust` makes
//! streams that also wait for the legacy default stream; nothing here uses that one. Contexts are current for a thread,
//! so each function makes the device's context current first: a few nanoseconds if it is already.

mod allocation;
mod archives;
mod driver;
mod events;
mod memory_pool;
mod module;
mod occupancy;
mod peer;
mod profiler;
mod ptx;
mod recording;
mod side_streams;

use super::error::{CudaUnavailable, DeviceError, DriverError};
use super::identity;
use super::limits::{self, KernelLimits};
use super::properties::{MemoryInfo, Properties, Version};
use super::reports::ModuleLoad;
use cuda_std::launch::{Dim3, LaunchConfig};
use cust::CudaApiVersion;
use cust::context::{Context, CurrentContext};
use cust::device::{Device, DeviceAttribute};
use cust::error::{CudaError, CudaResult};
use cust::memory::{AsyncCopyDestination, DevicePointer, DeviceSlice};
use cust::stream::{Stream, StreamFlags};
use cust::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
pub(super) use events::Events;
use memory_pool::MemoryPool;
use module::{EntryPoint, Modules};
pub(super) use recording::{CudaGraph, CudaRecording};
use side_streams::SideStreams;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The least compute capability: the kernels' PTX is for `sm_80`.
const OLDEST: Version = Version::new(8, 0);

/// A GPU. The order of the fields is that in which they are dropped.
#[derive(Debug)]
pub(super) struct Cuda {
    identity: String,
    properties: Properties,
    modules: Modules,
    /// The kernel launched last, for the message when a later call reports its failure.
    last_kernel: Mutex<Option<Arc<str>>>,
    /// Freed memory for later allocations.
    pool: Mutex<MemoryPool>,
    /// Made when they are first wanted.
    side_streams: OnceLock<SideStreams>,
    stream: Stream,
    context: Context,
}

impl Cuda {
    /// The device with that ordinal, of those that `CUDA_VISIBLE_DEVICES` leaves.
    pub fn open(ordinal: u32) -> Result<Self, CudaUnavailable> {
        // Without the library no function of `cust` may be called.
        libcuda::load().map_err(|error| CudaUnavailable::NoDriver {
            reason: error.to_string(),
        })?;
        let device = device(ordinal)?;
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
        let failed = |action| move |error| driver::describe(action, error);
        let context = Context::new(device).map_err(failed("retain a device's primary context"))?;
        CurrentContext::set_current(&context).map_err(failed("make a context current"))?;
        let stream = Stream::new(StreamFlags::DEFAULT, None).map_err(failed("create a stream"))?;
        Ok(Self {
            identity: identity::of_cuda(ordinal, &properties.name),
            modules: Modules::new(
                properties.name.clone(),
                properties.compute_capability,
                driver_version,
            ),
            properties,
            last_kernel: Mutex::new(None),
            pool: Mutex::default(),
            side_streams: OnceLock::new(),
            stream,
            context,
        })
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Copies to the device; `bytes` may be changed afterwards.
    ///
    /// # Safety
    ///
    /// The destination lies inside one allocation of this device.
    pub unsafe fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the caller guarantees that the device's bytes lie inside one allocation. `bytes` outlives the copy,
        // because `synchronize` waits for the stream.
        let result = unsafe { slice(address, bytes.len()).async_copy_from(bytes, &self.stream) };
        self.check("copy to the device", result)?;
        self.synchronize()
    }

    /// Copies from the device, after all that was launched before.
    ///
    /// # Safety
    ///
    /// The source lies inside one allocation of this device.
    pub unsafe fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the caller guarantees that the device's bytes lie inside one allocation. `bytes` outlives the copy,
        // because `synchronize` waits for the stream.
        let result = unsafe { slice(address, bytes.len()).async_copy_to(bytes, &self.stream) };
        // Waited for in any case: the copy may have begun.
        let done = self.synchronize();
        self.check("copy from the device", result)?;
        done
    }

    /// Sets bytes to `value`, after all that was launched before.
    ///
    /// # Safety
    ///
    /// The bytes lie inside one allocation of this device.
    pub unsafe fn fill(&self, address: u64, bytes: usize, value: u8) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the caller guarantees that the bytes lie inside one allocation.
        let result = unsafe { slice(address, bytes).set_8_async(value, &self.stream) };
        self.check("set device memory", result)
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
        kernel: &str,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<(), DeviceError> {
        // SAFETY: `launch_on` requires of its caller what this function requires.
        unsafe { self.launch_on(&self.stream, kernel, config, arguments) }
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
        let extents = |Dim3 { x, y, z }| (x, y, z);
        // SAFETY: the caller guarantees that the pointers are to arguments of the entry point's types; the driver
        // copies the arguments before it returns.
        let result = unsafe {
            stream.launch(
                &entry_point.function,
                extents(config.grid),
                extents(config.block),
                config.shared_bytes,
                arguments,
            )
        };
        self.check("launch a kernel", result)
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

    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.enter()?;
        self.check("finish what was launched", self.stream.synchronize())
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

    /// The stream on which everything of this device runs, for a library that launches kernels of its own.
    pub fn stream(&self) -> Result<*mut c_void, DeviceError> {
        self.enter()?;
        Ok(self.stream.as_inner().cast())
    }

    /// Makes the device's context current on this thread.
    pub fn enter(&self) -> Result<(), DeviceError> {
        let result = CurrentContext::set_current(&self.context);
        self.check("make a context current", result)
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
        // Modules and stream are destroyed next and need their context. If that fails, the context is lost, and they
        // with it.
        let _ = self.enter();
        let _ = self.free_pool();
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

/// # Safety
///
/// The bytes lie inside one allocation.
unsafe fn slice(address: u64, bytes: usize) -> DeviceSlice<u8> {
    // SAFETY: the caller guarantees that the bytes lie inside one allocation.
    unsafe { DeviceSlice::from_raw_parts_mut(DevicePointer::from_raw(address), bytes) }
}
