//! Where the parts are: the devices, which GPUs these are, and the links between them.

use super::link::Link;
use warprow::Device;
use warprow::device::{DeviceError, EmulatorOptions};
use warprow::multi::Devices;

/// The devices of some parts.
pub struct Placement {
    /// One for each part.
    pub devices: Devices,
    /// Different GPUs, or emulators.
    pub distinct: u32,
    /// Whether each GPU reads the memory of each other one directly; `None` for one GPU, and for emulators.
    pub peer_access: Option<bool>,
    /// `None` on emulators, for one part, and without an exchange.
    pub link: Option<Link>,
}

impl Placement {
    /// The devices of so many parts, on at most so many GPUs, and the link for rows of so many features, if these
    /// travel; `None` if there are fewer GPUs than asked for.
    pub fn new(
        first: &Device,
        (parts, gpus): (u32, Option<u32>),
        features: Option<usize>,
    ) -> anyhow::Result<Option<Self>> {
        let (devices, distinct) = devices(first, parts, gpus)?;
        if gpus.is_some_and(|gpus| !first.is_emulator() && distinct < gpus) {
            return Ok(None);
        }
        let link = match features {
            Some(features) => Link::measure(&devices, features)?,
            None => None,
        };
        Ok(Some(Self {
            peer_access: peer_access(&devices, distinct)?,
            devices,
            distinct,
            link,
        }))
    }

    /// The parts.
    pub fn parts(&self) -> u32 {
        self.devices.count().get() as u32
    }

    /// The GPU of a part.
    pub fn gpu_of(&self, part: usize) -> usize {
        part % self.distinct as usize
    }

    /// The most that a GPU has, where each part has so much.
    pub fn most(&self, of_parts: impl Iterator<Item = u64>) -> u64 {
        let mut of_gpus = vec![0; self.distinct as usize];
        for (part, count) in of_parts.enumerate() {
            of_gpus[self.gpu_of(part)] += count;
        }
        of_gpus.into_iter().max().unwrap_or(0)
    }
}

/// A device for each part, and how many different ones they are.
fn devices(first: &Device, parts: u32, gpus: Option<u32>) -> anyhow::Result<(Devices, u32)> {
    let most = gpus.unwrap_or(u32::MAX);
    let mut devices = vec![first.clone()];
    let mut distinct = 1;
    for part in 1..parts {
        let next = part == distinct && distinct < most;
        let device = match first.is_emulator() {
            true => Device::emulator(EmulatorOptions::default()),
            false => match next.then(|| Device::cuda(distinct)) {
                Some(Ok(device)) => device,
                _ => Device::cuda(part % distinct)?,
            },
        };
        let is_new = first.is_emulator() || next && is_new(&devices, &device);
        distinct += u32::from(is_new);
        devices.push(device);
    }
    Ok((Devices::of(devices)?, distinct))
}

/// Whether no handle is of the same GPU: the identities of further handles have a suffix.
fn is_new(devices: &[Device], device: &Device) -> bool {
    let gpu = |device: &Device| {
        device
            .identity()
            .split(", handle")
            .next()
            .map(str::to_owned)
    };
    devices.iter().all(|other| gpu(other) != gpu(device))
}

fn peer_access(devices: &Devices, distinct: u32) -> Result<Option<bool>, DeviceError> {
    if distinct == 1 || devices.first().is_emulator() {
        return Ok(None);
    }
    let gpus: Vec<&Device> = devices.iter().take(distinct as usize).collect();
    let mut all = true;
    for (number, gpu) in gpus.iter().enumerate() {
        for other in &gpus[..number] {
            all &= gpu.enable_peer_access(other)? && other.enable_peer_access(gpu)?;
        }
    }
    Ok(Some(all))
}
