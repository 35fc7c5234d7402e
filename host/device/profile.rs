//! The figures of a GPU, with which an emulator makes the plans that this GPU would get.

use super::emulator::EmulatorBackend;
use super::properties::{DeviceRates, Version};
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
#[non_exhaustive]
pub struct DeviceProfile {
    /// The GPU's name, as its driver reports it.
    pub name: String,
    /// The compute capability.
    pub compute_capability: Version,
    /// Multiprocessors, and the sizes of caches, registers and shared memory.
    pub hardware: Hardware,
    /// The peak rates, from the data sheet.
    pub rates: DeviceRates,
}

/// RTX 4090 (compute capability 8.9): "NVIDIA Ada GPU Architecture" (2022) and the tuning guide for Ada.
const RTX_4090: Hardware = Hardware {
    multiprocessors: 128,
    l1_bytes: 128 << 10,
    l2_bytes: 72 << 20,
    registers: 64 << 10,
    max_warps: 48,
    max_blocks: 24,
    shared_bytes: 100 << 10,
    reserved_shared_bytes: 1 << 10,
};

/// B200 (compute capability 10.0): the tuning guide for Blackwell.
const B200: Hardware = Hardware {
    multiprocessors: 148,
    l2_bytes: 126 << 20,
    ..Hardware::H100
};

impl DeviceProfile {
    /// NVIDIA H200 SXM.
    #[must_use]
    pub fn h200() -> Self {
        Self::new("NVIDIA H200", (9, 0), Hardware::H200, (1_980, 4_800))
    }

    /// NVIDIA H100 SXM.
    #[must_use]
    pub fn h100() -> Self {
        let name = "NVIDIA H100 80GB HBM3";
        Self::new(name, (9, 0), Hardware::H100, (1_980, 3_350))
    }

    /// NVIDIA A100 SXM with 80 GB of memory.
    #[must_use]
    pub fn a100() -> Self {
        let name = "NVIDIA A100-SXM4-80GB";
        Self::new(name, (8, 0), Hardware::A100, (1_410, 2_039))
    }

    /// NVIDIA GeForce RTX 4090. Nothing was measured on it.
    #[must_use]
    pub fn rtx_4090() -> Self {
        let name = "NVIDIA GeForce RTX 4090";
        Self::new(name, (8, 9), RTX_4090, (2_520, 1_008))
    }

    /// NVIDIA B200. Nothing was measured on it.
    #[must_use]
    pub fn b200() -> Self {
        Self::new("NVIDIA B200", (10, 0), B200, (1_965, 8_000))
    }

    /// All profiles.
    #[must_use]
    pub fn all() -> [Self; 5] {
        [
            Self::a100(),
            Self::rtx_4090(),
            Self::h100(),
            Self::h200(),
            Self::b200(),
        ]
    }

    /// The profile of the GPU of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|profile| profile.name == name)
    }

    /// A profile with a clock in MHz and a memory rate in GB/s.
    fn new(
        name: &str,
        (major, minor): (u32, u32),
        hardware: Hardware,
        (clock, memory): (u64, u64),
    ) -> Self {
        Self {
            name: name.to_owned(),
            compute_capability: Version::new(major, minor),
            hardware,
            rates: DeviceRates {
                clock_hz: clock * 1_000_000,
                memory_bytes_per_second: memory * 1_000_000_000,
                l1_bytes: hardware.l1_bytes,
            },
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
