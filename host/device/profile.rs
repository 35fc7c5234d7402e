//! The figures of a GPU, with which an emulator makes the plans that this GPU would get.

use super::emulator::EmulatorBackend;
use super::properties::Version;
use super::{Backend, Device};
use simt::{Hardware, Options as EmulatorOptions};

/// A GPU's figures that plans and models depend on.
///
/// An [emulator of it](Device::emulator_of) makes the GPU's plans: the same kernels, grids and tasks. An emulator
/// without a profile knows no caches and takes the host's cores for multiprocessors.
///
/// ```
/// use warprow::device::{Device, DeviceProfile, EmulatorOptions};
///
/// let device = Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default());
/// assert_eq!(device.to_string(), "emulator of NVIDIA H200 (132 multiprocessors)");
/// assert_eq!(device.properties().l2_bytes, Some(60 << 20));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProfile {
    /// The GPU's name, as its driver reports it.
    pub name: String,
    /// The compute capability.
    pub compute_capability: Version,
    /// Multiprocessors, and the sizes of caches, registers and shared memory.
    pub hardware: Hardware,
}

impl DeviceProfile {
    /// NVIDIA H200 SXM.
    #[must_use]
    pub fn h200() -> Self {
        Self::new("NVIDIA H200", Version::new(9, 0), Hardware::H200)
    }

    /// NVIDIA H100 SXM.
    #[must_use]
    pub fn h100() -> Self {
        Self::new("NVIDIA H100 80GB HBM3", Version::new(9, 0), Hardware::H100)
    }

    /// NVIDIA A100 SXM with 80 GB of memory.
    #[must_use]
    pub fn a100() -> Self {
        Self::new("NVIDIA A100-SXM4-80GB", Version::new(8, 0), Hardware::A100)
    }

    fn new(name: &str, compute_capability: Version, hardware: Hardware) -> Self {
        Self {
            name: name.to_owned(),
            compute_capability,
            hardware,
        }
    }

    /// Maximum bytes of shared memory of a block, static and dynamic together.
    #[must_use]
    pub fn max_shared_bytes_per_block(&self) -> u32 {
        let Hardware {
            shared_bytes,
            reserved_shared_bytes,
            ..
        } = self.hardware;
        shared_bytes.saturating_sub(reserved_shared_bytes)
    }
}

impl Device {
    /// An emulator that makes the plans of a certain GPU, with its own memory.
    pub fn emulator_of(profile: &DeviceProfile, options: EmulatorOptions) -> Self {
        let emulator = EmulatorBackend::of(profile, options);
        Self::new(Backend::Emulator(Box::new(emulator)))
    }
}
