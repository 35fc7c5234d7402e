//! How a device fails, with what was wanted and what was found.

use super::profile::ProfileError;
use super::properties::Version;
use super::properties::limits::LimitExceeded;
use super::properties::selector::{ParseSelectorError, Selector};
use std::fmt;

/// A failure of a device: it is not there, has no memory left, refuses a launch, or a kernel failed on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A text, or the environment variable `WARPROW_DEVICE`, names no device.
    #[error(transparent)]
    Selector(#[from] ParseSelectorError),

    /// The environment variable `WARPROW_PROFILE` names a file that has no profile.
    #[error("WARPROW_PROFILE: {0}")]
    Profile(#[from] ProfileError),

    /// A CUDA device was insisted on, and it is not there or does not serve.
    #[error("no device `{selector}`: {reason}")]
    NoCuda {
        /// The device that was wanted.
        selector: Selector,
        /// Why there is none.
        reason: CudaUnavailable,
    },

    /// A list of devices that is empty.
    #[error("no devices: wanted is a list of at least one")]
    NoDevices,

    /// The system gives no threads for devices that work at the same time.
    #[error("no threads: wanted are {wanted}, one for each device: {reason}")]
    NoThreads {
        /// Threads wanted.
        wanted: usize,
        /// The system's answer.
        reason: String,
    },

    /// The device has too little free memory.
    #[error("out of memory on {device}: {wanted} bytes wanted{}", free_bytes(*.free))]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// Bytes wanted.
        wanted: u64,
        /// Bytes free, where the device tells.
        free: Option<u64>,
    },

    /// The host has too little free memory for a copy of what is on the device.
    #[error("out of memory on the host: {wanted} bytes wanted")]
    HostOutOfMemory {
        /// Bytes wanted.
        wanted: u64,
    },

    /// A buffer of more bytes than a host can address.
    #[error("too large: the size of a buffer in bytes is {wanted}, at most {most} is possible")]
    BufferTooLarge {
        /// Bytes wanted.
        wanted: u128,
        /// The greatest size of a buffer.
        most: u64,
    },

    /// A slice of the host does not have the length of the buffer that it is copied to or from.
    #[error("wrong length: {what} has {found} elements, wanted are {wanted}")]
    SliceLength {
        /// Which slice.
        what: &'static str,
        /// The buffer's length.
        wanted: u64,
        /// The slice's length.
        found: u64,
    },

    /// A range that is not in the slice or buffer of which it is to be a part.
    #[error("wrong range: {start}..{end} is not in a slice of {len} elements")]
    SliceRange {
        /// The first element wanted.
        start: u64,
        /// The end of the elements wanted.
        end: u64,
        /// The slice's length.
        len: u64,
    },

    /// An address and a length that are no memory of a device.
    #[error("no device memory: {len} x {element} at address {address:#x}: {reason}")]
    RawMemory {
        /// The address.
        address: u64,
        /// The number of elements.
        len: u64,
        /// The elements' type.
        element: &'static str,
        /// What is wrong.
        reason: &'static str,
    },

    /// Something else than a launch was asked of a device that records ([`Device::record`](super::Device::record)).
    #[error("it cannot be recorded: {what}; launches alone can be")]
    NotRecordable {
        /// What was asked.
        what: &'static str,
    },

    /// A function that reports progress ([`Device::set_progress`](super::Device::set_progress)) used an emulator.
    #[error(
        "a function that reports progress cannot use an emulator, which runs a launch meanwhile: {what}"
    )]
    DuringProgress {
        /// What was asked.
        what: &'static str,
    },

    /// A CUDA stream was given to a device that is no GPU.
    #[error("{device} has no CUDA streams")]
    NoCudaStream {
        /// The device's [identity](super::Device::identity).
        device: String,
    },

    /// What launches do was asked of a device that does not count it.
    #[error(
        "{device} does not count what launches do: an emulator whose options have `counters` does, and for a GPU \
         Nsight Compute (`ncu`)"
    )]
    NoCounters {
        /// The device's name.
        device: String,
    },

    /// A launch that the device does not allow; nothing was launched.
    #[error("kernel `{kernel}` cannot be launched on {device}: {exceeded}")]
    LaunchLimit {
        /// The kernel's entry point.
        kernel: String,
        /// The device's name.
        device: String,
        /// What exceeds which limit.
        exceeded: LimitExceeded,
    },

    /// No module that the device has loaded has this entry point.
    #[error(
        "no kernel `{kernel}`: it is neither in the PTX of this crate nor in the {loaded} modules and archives \
         loaded beside it"
    )]
    NoKernel {
        /// The entry point that was wanted.
        kernel: String,
        /// How many modules and archives were loaded with [`Device::load_ptx`](super::Device::load_ptx) and
        /// [`Device::load_kernels`](super::Device::load_kernels).
        loaded: usize,
    },

    /// The kernel has instructions that the device lacks.
    #[error(
        "kernel `{kernel}` does not run on {device}: it is for {targets}, found is compute capability {found}"
    )]
    KernelTarget {
        /// The kernel's entry point.
        kernel: String,
        /// The device's name.
        device: String,
        /// Its compute capability.
        found: Version,
        /// The architectures that the kernel is compiled for: `sm_90` is for that and newer ones, `sm_90a` for that
        /// alone.
        targets: String,
    },

    /// Bytes that are no archive of kernels.
    #[error(transparent)]
    Archive(#[from] ptx_archive::ArchiveError),

    /// PTX that the driver does not compile.
    #[error("{device} does not take the PTX: {error}{}", indented(.log))]
    Ptx {
        /// The device's name.
        device: String,
        /// What the driver answered.
        error: Box<DriverError>,
        /// The messages of the driver's compiler.
        log: String,
    },

    /// Text with a zero byte, which is no PTX.
    #[error("this is no PTX: byte {position} is zero")]
    NotPtx {
        /// Where the first zero byte is, counted from 0.
        position: usize,
    },

    /// The driver is older than the PTX.
    #[error(transparent)]
    DriverTooOld(#[from] DriverTooOld),

    /// A launch has destroyed the device's context: an illegal access, say. Nothing on this GPU works any more in
    /// this process.
    #[error(
        "{device} has lost its context, and with it all buffers in this process: {error}. The cause is a kernel \
         launched \
         before{}; the emulator (WARPROW_DEVICE=emulator) would name its line",
        last_kernel(.kernel.as_deref())
    )]
    ContextLost {
        /// The device's name.
        device: String,
        /// The kernel launched last.
        kernel: Option<String>,
        /// What the driver answered.
        error: Box<DriverError>,
    },

    /// Any other error of the CUDA driver.
    #[error("{device}: {error}")]
    Driver {
        /// The device's name.
        device: String,
        /// What the driver answered.
        error: Box<DriverError>,
    },

    /// A kernel did on the emulator what it must not do.
    #[error(transparent)]
    Fault(#[from] Box<simt::Fault>),

    /// The program has no emulator.
    #[error("no emulator: warprow was built without its feature `emulator`")]
    NoEmulator,

    /// The emulator refuses what the host does to its memory, or has no addresses for an allocation.
    #[error("emulator: {0}")]
    EmulatorMemory(#[from] simt::MemoryError),
}

const NOT_BUILT: &str = if cfg!(target_os = "linux") {
    "this program was built without the feature `cuda`"
} else {
    "warprow uses GPUs on Linux only"
};

/// Why no CUDA device serves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaUnavailable {
    /// The crate was built without its feature `cuda`, or for a system other than Linux.
    #[error("{NOT_BUILT}")]
    NotBuilt,

    /// There is no driver library.
    #[error("{reason}")]
    NoDriver {
        /// What was tried, and what the dynamic linker answered.
        reason: String,
    },

    /// The driver is there, and it has no device.
    #[error("the CUDA driver has no device{}", visible_devices(.visible.as_deref()))]
    NoDevice {
        /// The value of the environment variable `CUDA_VISIBLE_DEVICES`, if it is set.
        visible: Option<String>,
    },

    /// There are fewer devices than that.
    #[error(
        "the CUDA driver has {count} device{}, wanted is ordinal {ordinal}, counted from 0{}",
        if *.count == 1 { "" } else { "s" }, visible_devices(.visible.as_deref())
    )]
    NoSuchOrdinal {
        /// The ordinal that was wanted.
        ordinal: u32,
        /// How many devices there are.
        count: u32,
        /// The value of the environment variable `CUDA_VISIBLE_DEVICES`, if it is set.
        visible: Option<String>,
    },

    /// The device is older than the kernels' instructions.
    #[error("{device} has compute capability {found}, at least {wanted} is wanted")]
    TooOld {
        /// The device's name.
        device: String,
        /// Its compute capability.
        found: Version,
        /// The least that serves.
        wanted: Version,
    },

    /// The driver is older than the PTX of this crate.
    #[error(transparent)]
    DriverTooOld(#[from] DriverTooOld),

    /// The driver answered with an error.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// A driver that is older than the PTX that it is given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the CUDA driver is too old: it supports CUDA {found}, and PTX version {ptx} wants a driver for \
     CUDA {wanted} or newer"
)]
#[non_exhaustive]
pub struct DriverTooOld {
    /// The PTX's version.
    pub ptx: Version,
    /// The CUDA version that the driver must support.
    pub wanted: Version,
    /// The CUDA version that it supports.
    pub found: Version,
}

/// What a function of the CUDA driver answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the CUDA driver failed to {action}: {name} ({code}), {description}")]
#[non_exhaustive]
pub struct DriverError {
    /// What was asked of the driver, a verb and its object.
    pub action: &'static str,
    /// The error's number, a `CUresult`.
    pub code: u32,
    /// The error's name: `CUDA_ERROR_OUT_OF_MEMORY`.
    pub name: String,
    /// The driver's own description.
    pub description: String,
}

fn free_bytes(free: Option<u64>) -> String {
    free.map_or_else(String::new, |free| format!(", {free} free"))
}

fn indented(log: &str) -> String {
    log.lines().map(|line| format!("\n  {line}")).collect()
}

fn last_kernel(kernel: Option<&str>) -> String {
    kernel.map_or_else(String::new, |kernel| format!(" (the last one: `{kernel}`)"))
}

fn visible_devices(value: Option<&str>) -> impl fmt::Display {
    value.map_or_else(String::new, |value| {
        format!(" (CUDA_VISIBLE_DEVICES is `{value}`)")
    })
}

impl From<CudaUnavailable> for DeviceError {
    fn from(reason: CudaUnavailable) -> Self {
        Self::NoCuda {
            selector: Selector::Cuda(None),
            reason,
        }
    }
}
