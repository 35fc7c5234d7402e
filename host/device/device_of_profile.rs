//! From a profile to an emulator, and from a device to its profile.

use super::emulator::EmulatorBackend;
use super::profile::{DeviceProfile, EMULATOR_OF};
use super::properties::Version;
use super::{Backend, Device};
use simt::Options as EmulatorOptions;

impl DeviceProfile {
    /// The profile of the GPU of a device: that of its name, or that of a GPU of its generation with the figures that
    /// the device tells. Of an emulator of no certain GPU it is the H200's, with another name.
    #[must_use]
    pub fn of(device: &Device) -> Self {
        let found = device.properties();
        let name = found.name.strip_prefix(EMULATOR_OF).unwrap_or(&found.name);
        let mut profile = Self::named(name).unwrap_or_else(|| {
            let wanted = found.compute_capability;
            let newest = |is_alike: &dyn Fn(Version) -> bool| {
                let mut all = Self::all().into_iter().rev();
                all.find(|profile| is_alike(profile.compute_capability))
            };
            let alike = newest(&|version| version == wanted)
                .or_else(|| newest(&|version| version.major == wanted.major));
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
}

impl Device {
    /// An emulator that makes the plans of a certain GPU, with its own memory.
    pub fn emulator_of(profile: &DeviceProfile, options: EmulatorOptions) -> Self {
        let emulator = EmulatorBackend::of(profile, options);
        Self::new(Backend::Emulator(Box::new(emulator)))
    }
}
