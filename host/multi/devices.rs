//! Several devices that work on one product, each with a thread of its own.

#[cfg(feature = "emulator")]
use crate::device::EmulatorOptions;
use crate::device::{CudaUnavailable, Device, DeviceError, DeviceProfile, Selector};
use rayon::ThreadPool;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// Devices that share products. With one device its work runs on the calling thread.
///
/// ```
/// use warprow::multi::Devices;
///
/// # fn main() -> Result<(), warprow::Error> {
/// let devices = Devices::all()?;
/// println!("{devices}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Devices {
    devices: Vec<Device>,
    /// A thread for each; `None` for one device.
    threads: Option<Arc<ThreadPool>>,
    /// GPUs that are there and do not serve, by their ordinals, and why.
    unavailable: Arc<[(u32, CudaUnavailable)]>,
}

impl Devices {
    /// All GPUs that serve, of those that `CUDA_VISIBLE_DEVICES` leaves, or the emulator if there is none. The
    /// environment variable `WARPROW_DEVICE` may name one device instead. [`unavailable`](Self::unavailable) and
    /// `Display` tell which GPUs do not serve, and why.
    ///
    /// # Errors
    ///
    /// The variable names no device, or one that is not there; `WARPROW_PROFILE` names a file without a profile; the
    /// system gives no threads.
    pub fn all() -> Result<Self, DeviceError> {
        let selector = Selector::from_environment()?;
        let profile = DeviceProfile::from_environment()?;
        // No machine has so many; the driver's answer is how many there are.
        let (gpus, unavailable) = match (selector, Device::cuda(u32::MAX)) {
            (Selector::Auto, Err(CudaUnavailable::NoSuchOrdinal { count, .. })) => {
                open_each(count, |ordinal| {
                    Ok(Device::cuda(ordinal)?.with_rates_of(profile.clone()))
                })
            }
            _ => Default::default(),
        };
        let devices = match gpus.is_empty() {
            true => vec![Device::select(selector)?],
            false => gpus,
        };
        Ok(Self {
            unavailable: unavailable.into(),
            ..Self::of(devices)?
        })
    }

    /// These devices, in this order. One device may be there several times, as several handles.
    ///
    /// # Errors
    ///
    /// There are none; the system gives no threads; the driver's.
    pub fn of(devices: Vec<Device>) -> Result<Self, DeviceError> {
        if devices.is_empty() {
            return Err(DeviceError::NoDevices);
        }
        for device in &devices {
            for other in &devices {
                device.enable_peer_access(other)?;
            }
        }
        let threads = match devices.len() {
            1 => None,
            count => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(count);
                let pool = pool.thread_name(|number| format!("warprow device {number}"));
                let pool = pool.build();
                Some(Arc::new(pool.map_err(|error| DeviceError::NoThreads {
                    wanted: count,
                    reason: error.to_string(),
                })?))
            }
        };
        Ok(Self {
            devices,
            threads,
            unavailable: Arc::default(),
        })
    }

    /// So many emulators, each with its own memory: for tests, and for a look at what travels.
    ///
    /// # Errors
    ///
    /// The system gives no threads.
    #[cfg(feature = "emulator")]
    pub fn emulators(count: NonZeroUsize, options: EmulatorOptions) -> Result<Self, DeviceError> {
        Self::of(
            (0..count.get())
                .map(|_| Device::emulator(options))
                .collect(),
        )
    }

    /// The number of devices.
    pub fn count(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.devices.len()).expect("`of` has refused an empty list")
    }

    /// The devices.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Device> {
        self.devices.iter()
    }

    /// The GPUs that [`all`](Self::all) has found and that do not serve, by their ordinals, and why.
    pub fn unavailable(&self) -> &[(u32, CudaUnavailable)] {
        &self.unavailable
    }

    /// The first device.
    pub fn first(&self) -> &Device {
        &self.devices[0]
    }

    /// A device by its number.
    pub(super) fn get(&self, number: usize) -> &Device {
        &self.devices[number]
    }

    /// Waits until all devices have done all their work.
    ///
    /// # Errors
    ///
    /// A launch that failed since, the first one if several did. All devices are waited for even then.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        let waits = self.devices.iter().map(Device::synchronize);
        waits.fold(Ok(()), Result::and)
    }

    /// Calls `work` with each device's number, at the same time on the devices' threads.
    pub(super) fn each<R: Send, E: Send>(
        &self,
        work: impl Fn(usize) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let Some(threads) = &self.threads else {
            return Ok(vec![work(0)?]);
        };
        let mut results: Vec<Mutex<Option<Result<R, E>>>> = Vec::new();
        results.resize_with(self.devices.len(), Mutex::default);
        on_each_thread(threads, &|number| {
            let result = work(number);
            let place = results[number].lock();
            *place.unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
        let results = results.into_iter();
        let results =
            results.map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
        results.flatten().collect()
    }

    /// As [`each`](Self::each), and gives each device one of `items`.
    pub(super) fn each_with<S: Send, R: Send, E: Send>(
        &self,
        items: impl IntoIterator<Item = S>,
        work: impl Fn(usize, S) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let items: Vec<Mutex<Option<S>>> = items
            .into_iter()
            .map(|item| Mutex::new(Some(item)))
            .collect();
        self.each(|number| {
            let mut item = items[number].lock().unwrap_or_else(PoisonError::into_inner);
            work(number, item.take().expect("each device takes its own"))
        })
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, device) in self.devices.iter().enumerate() {
            write!(
                f,
                "{}{}",
                if number == 0 { "" } else { ", " },
                device.identity()
            )?;
        }
        for (ordinal, reason) in self.unavailable() {
            write!(f, "; not CUDA device {ordinal}: {reason}")?;
        }
        Ok(())
    }
}

/// Calls `work` with the number of each thread, on that thread. Not generic, so that rayon's code is compiled
/// once.
fn on_each_thread(threads: &ThreadPool, work: &(dyn Fn(usize) + Sync)) {
    threads.broadcast(|context| work(context.index()));
}

/// Opens the devices with these ordinals: those that serve, and why the others do not.
fn open_each(
    count: u32,
    open: impl Fn(u32) -> Result<Device, CudaUnavailable>,
) -> (Vec<Device>, Vec<(u32, CudaUnavailable)>) {
    let (mut devices, mut unavailable) = (Vec::new(), Vec::new());
    for ordinal in 0..count {
        match open(ordinal) {
            Ok(device) => devices.push(device),
            Err(reason) => unavailable.push((ordinal, reason)),
        }
    }
    (devices, unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Version;

    #[test]
    fn a_gpu_that_does_not_serve_is_named_and_the_others_are_taken() {
        let open = |ordinal| match ordinal {
            0 | 2 => Err(CudaUnavailable::TooOld {
                device: format!("GPU {ordinal}"),
                found: Version::new(7, 0),
                wanted: Version::new(8, 0),
            }),
            _ => Ok(Device::emulator(EmulatorOptions::default())),
        };
        let (gpus, unavailable) = open_each(4, open);
        assert_eq!(gpus.len(), 2);
        let devices = Devices {
            unavailable: unavailable.into(),
            ..Devices::of(gpus).unwrap()
        };
        let ordinals = devices.unavailable().iter().map(|(ordinal, _)| *ordinal);
        assert_eq!(ordinals.collect::<Vec<_>>(), [0, 2]);
        let text = devices.to_string();
        assert!(
            text.contains("; not CUDA device 2: GPU 2 has compute capability 7.0"),
            "{text}"
        );
    }
}
