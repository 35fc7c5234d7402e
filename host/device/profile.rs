//! The sizes and rates of a GPU. Plans on an emulator use all of them; plans on the GPU itself use the rates.

mod error;
mod file;

pub use error::ProfileError;

use super::properties::{DeviceRates, Version};
use simt::Hardware;
use std::path::Path;

/// The environment variable that names the file of a profile.
pub const PROFILE_VARIABLE: &str = "WARPROW_PROFILE";

/// What the name of an emulator of a GPU begins with.
pub(super) const EMULATOR_OF: &str = "emulator of ";

/// A GPU's figures that plans and models depend on.
///
/// An [emulator of it](super::Device::emulator_of) makes the GPU's plans: the same kernels, grids and tasks. An
/// emulator without a profile knows no caches and takes the host's cores for multiprocessors.
///
/// Profiles of five GPUs are in the library; others are [read](Self::read) from files. Plans on a GPU with the name of
/// one of the five use its rates. The environment variable `WARPROW_PROFILE` can name a file for
/// [`Device::open`](super::Device::open) and [`Device::select`](super::Device::select). If they open an emulator, it is
/// an emulator of the profile's GPU. If they open a GPU with the profile's name, plans use the profile's rates. A GPU
/// with another name ignores the profile.
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
    /// Rates, L1 size and the time of a launch.
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

    /// NVIDIA A100 SXM with 80 GB of memory. Nothing was measured on it.
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
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn from_environment() -> Result<Option<Self>, ProfileError> {
        let path = std::env::var_os(PROFILE_VARIABLE).filter(|path| !path.is_empty());
        path.map(Self::read).transpose()
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
