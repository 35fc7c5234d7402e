//! Devices: a GPU through CUDA, or the emulator, behind one API.
//!
//! ```
//! use warprow::device::Device;
//!
//! # fn main() -> Result<(), warprow::Error> {
//! let device = Device::open()?;
//! println!("{device}");
//! let buffer = device.upload(&[1.0_f32, 2.0, 3.0])?;
//! assert_eq!(buffer.download()?, [1.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Device`] is a handle: clones share it, all threads may use it, and several may be open at once. A device does
//! one thing after the other, in the order of the calls, unless it has [several streams](Device::new_stream). On a GPU
//! a launch returns before the kernel has run, and a copy to the host when it is done.

mod allocations;
mod buffer;
#[cfg(cuda)]
mod cuda;
mod device_of_profile;
mod early_words;
#[cfg_attr(
    not(feature = "emulator"),
    allow(dead_code, reason = "nothing opens an emulator")
)]
mod emulator;
mod error;
mod fork;
mod launches;
mod pinned;
mod profile;
mod properties;
mod recording;
mod scratch;
mod slice;
mod slice_mut;
mod stream;
mod timer;
mod zero_counters;

pub use buffer::DeviceBuffer;
pub(crate) use buffer::optional_pointer;
pub use error::{CudaUnavailable, DeviceError, DriverError, DriverTooOld};
pub(crate) use fork::Fork;
pub use launches::LaunchLog;
pub use launches::reports::{ModuleLoad, Progress};
pub use pinned::{PinnedBuffer, Transfer};
pub use profile::{DeviceProfile, PROFILE_VARIABLE, ProfileError};
pub use properties::host_memory::available_host_memory;
pub use properties::limits::LimitExceeded;
pub use properties::selector::{DEVICE_VARIABLE, ParseSelectorError, Selector};
pub use properties::{DeviceRates, MemoryInfo, Properties, Version};
pub use recording::LaunchGraph;
pub(crate) use scratch::Scratch;
pub use simt::pictures;
pub use simt::{
    Checks, CounterOptions, Counters, Hardware, LaunchReport, Options as EmulatorOptions, Schedule,
    TracedWarp,
};
pub use slice::DeviceSlice;
pub use slice_mut::DeviceSliceMut;
pub use stream::Stream;
pub use timer::Timer;
pub(crate) use zero_counters::ZeroCounters;

use allocations::FailingAllocation;
use cuda_std::element::Element;
use launches::LaunchLogs;
use ptx_archive::Archive;
use recording::Recordings;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use stream::Streams;
use stream::queue::Queue;

/// A device that kernels run on. Two are equal if they are clones of one handle.
#[derive(Clone)]
pub struct Device {
    // Dropped before the back end, whose graphs they may hold.
    recordings: Arc<Recordings>,
    failing_allocation: Arc<FailingAllocation>,
    launch_logs: Arc<LaunchLogs>,
    streams: Arc<Streams>,
    backend: Arc<Backend>,
}

#[allow(
    clippy::large_enum_variant,
    reason = "a device has one, behind an `Arc`"
)]
enum Backend {
    #[cfg_attr(
        not(feature = "emulator"),
        allow(dead_code, reason = "nothing opens an emulator")
    )]
    Emulator(Box<emulator::EmulatorBackend>),
    #[cfg(cuda)]
    Cuda(Box<cuda::Cuda>),
}

/// Calls the same method of either back end.
macro_rules! on_backend {
    ($backend:expr, $device:ident => $call:expr) => {
        match $backend {
            Backend::Emulator($device) => $call,
            #[cfg(cuda)]
            Backend::Cuda($device) => $call,
        }
    };
}
use on_backend;

impl Device {
    /// The device that the environment variable `WARPROW_DEVICE` names: `auto` (as when it is not set), `cuda`,
    /// `cuda:1`, `emulator`. If `WARPROW_PROFILE` names a file, it has the GPU's rates: see [`DeviceProfile`].
    ///
    /// # Errors
    ///
    /// The variable names no device, or one that is not there; the file has no profile.
    pub fn open() -> Result<Self, DeviceError> {
        Self::select(Selector::from_environment()?)
    }

    /// The device that `selector` names.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoCuda`] if it is a CUDA device that is not there or does not serve; [`DeviceError::Profile`] if
    /// `WARPROW_PROFILE` names a file without a profile.
    pub fn select(selector: Selector) -> Result<Self, DeviceError> {
        Ok(Self::select_with_reason(selector)?.0)
    }

    /// [`select`](Self::select), and if `auto` had to take the emulator the reason why no GPU serves.
    ///
    /// # Errors
    ///
    /// As [`select`](Self::select).
    pub fn select_with_reason(
        selector: Selector,
    ) -> Result<(Self, Option<CudaUnavailable>), DeviceError> {
        let profile = DeviceProfile::from_environment()?;
        let ordinal = match selector {
            Selector::Auto => 0,
            Selector::Cuda(ordinal) => ordinal.unwrap_or(0),
            Selector::Emulator => return Ok((Self::default_emulator(profile)?, None)),
        };
        match Self::cuda(ordinal) {
            Ok(device) => Ok((device.with_rates_of(profile), None)),
            Err(reason) if selector.insists() || cfg!(not(feature = "emulator")) => {
                Err(DeviceError::NoCuda { selector, reason })
            }
            Err(reason) => Ok((Self::default_emulator(profile)?, Some(reason))),
        }
    }

    /// The same with the rates of a profile, if it is one of this GPU. Nobody shares the device yet.
    #[cfg(cuda)]
    pub(crate) fn with_rates_of(mut self, profile: Option<DeviceProfile>) -> Self {
        if let (Some(profile), Some(Backend::Cuda(cuda))) =
            (profile, Arc::get_mut(&mut self.backend))
        {
            cuda.take_rates_of(&profile);
        }
        self
    }

    /// The same: there is no GPU.
    #[cfg(not(cuda))]
    pub(crate) fn with_rates_of(self, _profile: Option<DeviceProfile>) -> Self {
        self
    }

    /// The CUDA device with that ordinal, as the driver numbers those that `CUDA_VISIBLE_DEVICES` leaves.
    ///
    /// # Errors
    ///
    /// Why it is not there or does not serve.
    #[cfg(cuda)]
    pub fn cuda(ordinal: u32) -> Result<Self, CudaUnavailable> {
        Ok(Self::new(Backend::Cuda(Box::new(cuda::Cuda::open(
            ordinal,
        )?))))
    }

    /// The answer of a program without CUDA.
    ///
    /// # Errors
    ///
    /// [`CudaUnavailable::NotBuilt`].
    #[cfg(not(cuda))]
    pub fn cuda(_ordinal: u32) -> Result<Self, CudaUnavailable> {
        Err(CudaUnavailable::NotBuilt)
    }

    #[cfg(feature = "emulator")]
    fn default_emulator(profile: Option<DeviceProfile>) -> Result<Self, DeviceError> {
        let options = EmulatorOptions::default();
        Ok(match profile {
            Some(profile) => Self::emulator_of(&profile, options),
            None => Self::emulator(options),
        })
    }

    #[cfg(not(feature = "emulator"))]
    fn default_emulator(_profile: Option<DeviceProfile>) -> Result<Self, DeviceError> {
        Err(DeviceError::NoEmulator)
    }

    /// An emulator of its own, with its own memory.
    #[cfg(feature = "emulator")]
    pub fn emulator(options: EmulatorOptions) -> Self {
        let emulator = emulator::EmulatorBackend::new(options);
        Self::new(Backend::Emulator(Box::new(emulator)))
    }

    fn new(backend: Backend) -> Self {
        let own = match &backend {
            Backend::Emulator(_) => Queue::of_emulator(),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.own_queue(),
        };
        Self {
            recordings: Arc::default(),
            failing_allocation: Arc::default(),
            launch_logs: Arc::default(),
            streams: Arc::new(Streams::new(own)),
            backend: Arc::new(backend),
        }
    }

    /// The device's name: `NVIDIA H200`, `emulator`, or `emulator of NVIDIA H200`.
    pub fn name(&self) -> &str {
        &self.properties().name
    }

    /// What tells the device from all others of the process: `CUDA device 0 (NVIDIA H200)`, `emulator 3`.
    ///
    /// Handles that are opened one by one are different devices, also those of one GPU, which differ by the number of
    /// the handle.
    pub fn identity(&self) -> &str {
        on_backend!(&*self.backend, device => device.identity())
    }

    /// Whether it is the emulator.
    pub fn is_emulator(&self) -> bool {
        matches!(*self.backend, Backend::Emulator(_))
    }

    /// What the device is and what it allows.
    pub fn properties(&self) -> &Properties {
        on_backend!(&*self.backend, device => device.properties())
    }

    /// Free and total device memory; `None` on an emulator without a limit
    /// ([`EmulatorOptions::memory`](simt::Options::memory)), whose memory is the host's.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn memory(&self) -> Result<Option<MemoryInfo>, DeviceError> {
        match &*self.backend {
            Backend::Emulator(emulator) => Ok(emulator.memory()),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.memory().map(Some),
        }
    }

    /// A buffer with a copy of `elements`.
    ///
    /// # Errors
    ///
    /// Out of memory, or the driver's.
    pub fn upload<T: Element>(&self, elements: &[T]) -> Result<DeviceBuffer<T>, DeviceError> {
        let mut buffer = DeviceBuffer::allocate(self, elements.len())?;
        buffer.copy_from_slice(elements)?;
        Ok(buffer)
    }

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    ///
    /// Out of memory, more than [`isize::MAX`] bytes, or the driver's.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>, DeviceError> {
        let mut buffer = DeviceBuffer::allocate(self, len)?;
        buffer.fill_zero()?;
        Ok(buffer)
    }

    /// A buffer of `len` elements for a kernel to write.
    ///
    /// Its content is arbitrary until it is written. An emulator with full checks reports kernels and downloads that
    /// read it before. A GPU reports nothing; with debug assertions all bits are set there, which is NaN in every
    /// floating-point type.
    ///
    /// # Errors
    ///
    /// Out of memory, more than [`isize::MAX`] bytes, or the driver's.
    pub fn uninitialized<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>, DeviceError> {
        if len > 0 {
            self.recordings.refuse("an allocation")?;
        }
        self.scratch(len)
    }

    /// Compiles a module and adds it to the kernels of this crate: its entry points can be launched from now on. On
    /// the emulator, which runs the kernels' handles, there is nothing to do. For an archive of modules see
    /// [`load_kernels`](Self::load_kernels).
    ///
    /// If several modules have an entry point, the one that was loaded first counts. None replaces this crate's own.
    ///
    /// # Errors
    ///
    /// The driver is too old for the PTX or does not compile it; the error has its messages.
    pub fn load_ptx(&self, ptx: &str) -> Result<(), DeviceError> {
        on_backend!(&*self.backend, device => device.load_ptx(ptx))
    }

    /// Adds the kernels of an archive that `cuda_builder` has made of a kernel crate: each can be launched from now
    /// on, and its module is compiled when it is first launched. `include_bytes!` of the archive will do.
    ///
    /// If several archives or modules have an entry point, the one that was loaded first counts. None replaces this
    /// crate's own. On the emulator, which runs the kernels' handles, the archive is only checked.
    ///
    /// # Errors
    ///
    /// The bytes are no archive of PTX modules.
    pub fn load_kernels(&self, archive: impl Into<Cow<'static, [u8]>>) -> Result<(), DeviceError> {
        let archive = Archive::open(archive)?;
        match &*self.backend {
            Backend::Emulator(_) => drop(archive),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.load_kernels(archive),
        }
        Ok(())
    }

    /// Waits until the device has done all its work, on all its streams.
    ///
    /// # Errors
    ///
    /// A launch that failed since. All streams are waited for even then.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.recordings.refuse("to wait for the device")?;
        match &*self.backend {
            Backend::Emulator(_) => Ok(()),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => {
                let streams = self.streams.all();
                let waits = streams.iter().map(|queue| cuda.synchronize(queue.cuda()));
                waits.fold(Ok(()), Result::and)
            }
        }
    }

    /// Waits until this thread's stream has done all its work.
    pub(crate) fn synchronize_stream(&self) -> Result<(), DeviceError> {
        self.recordings.refuse("to wait for a stream")?;
        match &*self.backend {
            Backend::Emulator(_) => Ok(()),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.synchronize(self.streams.current().cuda()),
        }
    }

    /// Starts to measure the device's own time.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn start_timer(&self) -> Result<Timer, DeviceError> {
        self.recordings.refuse("to measure time")?;
        Timer::start(self)
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}

impl Eq for Device {}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.properties().fmt(f)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.identity())
    }
}
