//! Opening a GPU: its context, its properties, and what they must be.

use super::driver::{Context, Stream};
use super::{Cuda, CudaQueue, Modules, SmallReads, archives, driver, ptx};
use crate::device::error::{CudaUnavailable, DriverError};
use crate::device::profile::DeviceProfile;
use crate::device::properties::identity;
use crate::device::properties::{DeviceRates, Properties, Version};
use crate::device::stream::queue::Queue;
use cust::CudaApiVersion;
use cust::device::{Device, DeviceAttribute};
use cust::error::{CudaError, CudaResult};
use cust::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
use std::any::Any;
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// The least compute capability: the kernels' PTX is for `sm_80`.
const OLDEST: Version = Version::new(8, 0);

/// Unless another limit is set, the pool holds at most the device's memory divided by this.
const POOL_PARTS: u64 = 4;

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
        let stream = unsafe { Stream::borrowed(stream, &context, Box::new(())) };
        Ok(wanted.in_context(ordinal, context, stream))
    }
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
            uuid: Some(driver::device_uuid(device)?),
            driver: Some(driver_version),
            kernels: Some(archives::checksum()),
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
            small_reads: SmallReads::new(&context),
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

/// Bytes of an L1 cache that cannot be shared memory, since compute capability 8.0.
const L1_BEYOND_SHARED: u32 = 28 << 10;

/// The driver tells frequencies in kHz.
const KHZ_PER_MHZ: u32 = 1000;

/// All properties that `cust` can tell.
fn properties(device: Device) -> CudaResult<Properties> {
    use DeviceAttribute as A;
    let attribute = |attribute| device.get_attribute(attribute).map(count);
    let shared_bytes_per_block = attribute(A::MaxSharedMemoryPerBlock)?;
    let name = device.name()?;
    let compute_capability = Version::new(
        attribute(A::ComputeCapabilityMajor)?,
        attribute(A::ComputeCapabilityMinor)?,
    );
    let rates = match DeviceProfile::named(&name) {
        Some(profile) => profile.rates,
        None => DeviceRates {
            clock_hz: 1000 * u64::from(attribute(A::ClockRate)?),
            // Two transfers a cycle.
            memory_bytes_per_second: 2
                * 1000
                * u64::from(attribute(A::MemoryClockRate)?)
                * u64::from(attribute(A::GlobalMemoryBusWidth)?)
                / 8,
            l2_bytes_per_second: None,
            launch_nanoseconds: None,
            l1_bytes: attribute(A::MaxSharedMemoryPerMultiprocessor)? + L1_BEYOND_SHARED,
            l2_partitions: DeviceRates::l2_partitions_of(compute_capability),
        },
    };
    Ok(Properties {
        rates: Some(rates),
        name,
        uuid: None,
        compute_capability,
        driver: None,
        kernels: None,
        clock_mhz: Some(attribute(A::ClockRate)? / KHZ_PER_MHZ),
        memory_clock_mhz: Some(attribute(A::MemoryClockRate)? / KHZ_PER_MHZ),
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
