//! The figures of a GPU, with which an emulator makes the plans that this GPU would get.

mod file;

pub use file::ProfileError;

use super::emulator::EmulatorBackend;
use super::properties::{DeviceRates, Version};
use super::{Backend, Device};
use simt::{Hardware, Options as EmulatorOptions};
use std::path::Path;

/// The environment variable that names the file of a profile.
pub const PROFILE_VARIABLE: &str = "WARPROW_PROFILE";

/// What the name of an emulator of a GPU begins with.
pub(super) const EMULATOR_OF: &str = "emulator of ";

/// A GPU's figures that plans and models depend on.
///
/// An [emulator of it](Device::emulator_of) makes the GPU's plans: the same kernels, grids and tasks. An emulator
/// without a profile knows no caches and takes the host's cores for multiprocessors.
///
/// Profiles of five GPUs are in the library; others are [read](Self::read) from files. If the environment variable
/// `WARPROW_PROFILE` names one, [`Device::open`] and [`Device::select`] open an emulator of its GPU, or plan for a GPU of
/// that name by its rates.
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
    /// Where the figures come from: measurements or data sheets.
    pub source: String,
    /// The compute capability.
    pub compute_capability: Version,
    /// Multiprocessors, and the sizes of caches, registers and shared memory.
    pub hardware: Hardware,
    /// The peak rates.
    pub rates: DeviceRates,
}

/// The files of the profiles, from the oldest GPU to the newest.
const FILES: [&str; 5] = [
    include_str!("profile/a100.json"),
    include_str!("profile/rtx_4090.json"),
    include_str!("profile/h100.json"),
    include_str!("profile/h200.json"),
    include_str!("profile/b200.json"),
];

impl DeviceProfile {
    /// NVIDIA H200 SXM.
    #[must_use]
    pub fn h200() -> Self {
        let [.., h200, _] = Self::all();
        h200
    }

    /// NVIDIA H100 SXM.
    #[must_use]
    pub fn h100() -> Self {
        let [_, _, h100, ..] = Self::all();
        h100
    }

    /// NVIDIA A100 SXM with 80 GB of memory.
    #[must_use]
    pub fn a100() -> Self {
        let [a100, ..] = Self::all();
        a100
    }

    /// NVIDIA GeForce RTX 4090. Nothing was measured on it.
    #[must_use]
    pub fn rtx_4090() -> Self {
        let [_, rtx_4090, ..] = Self::all();
        rtx_4090
    }

    /// NVIDIA B200. Nothing was measured on it.
    #[must_use]
    pub fn b200() -> Self {
        let [.., b200] = Self::all();
        b200
    }

    /// All profiles.
    #[must_use]
    pub fn all() -> [Self; 5] {
        FILES.map(
            |text| match Self::parse(text, Path::new("host/device/profile")) {
                Ok(profile) => profile,
                // The files are part of the program, and tests read them.
                Err(error) => unreachable!("{error}"),
            },
        )
    }

    /// The profile of the GPU of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|profile| profile.name == name)
    }

    /// That of the file which the environment variable `WARPROW_PROFILE` names, if it is set.
    pub(super) fn from_environment() -> Result<Option<Self>, ProfileError> {
        let path = std::env::var_os(PROFILE_VARIABLE).filter(|path| !path.is_empty());
        path.map(Self::read).transpose()
    }

    /// The profile of the GPU of a device: that of its name, or that of a GPU of its generation with the figures that the
    /// device tells. Of an emulator of no certain GPU it is the H200's, with another name.
    #[must_use]
    pub fn of(device: &Device) -> Self {
        let found = device.properties();
        let name = found.name.strip_prefix(EMULATOR_OF).unwrap_or(&found.name);
        let mut profile = Self::named(name).unwrap_or_else(|| {
            let is_alike =
                |profile: &Self| profile.compute_capability.major == found.compute_capability.major;
            let alike = Self::all().into_iter().rev().find(is_alike);
            Self {
                name: name.to_owned(),
                source:
                    "Sizes as the driver reports them, and those of a GPU of the same generation."
                        .to_owned(),
                compute_capability: found.compute_capability,
                ..alike.unwrap_or_else(Self::h200)
            }
        });
        if let (Some(rates), Some(l2_bytes)) = (found.rates, found.l2_bytes) {
            profile.rates = rates;
            profile.hardware.multiprocessors = found.multiprocessors;
            profile.hardware.l1_bytes = rates.l1_bytes;
            profile.hardware.l2_bytes = l2_bytes;
        }
        profile
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
