//! Several devices that work on one product, each with a thread of its own.

use crate::device::{Device, DeviceError, EmulatorOptions, Selector};
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
    threads: Option<Arc<rayon::ThreadPool>>,
}

impl Devices {
    /// All GPUs that the driver numbers (those that `CUDA_VISIBLE_DEVICES` leaves), or the emulator if there is none.
    /// The environment variable `WARPROW_DEVICE` may name one device instead.
    ///
    /// # Errors
    ///
    /// The variable names no device, or one that is not there; the system gives no threads.
    pub fn all() -> Result<Self, DeviceError> {
        let first = Device::select(Selector::from_environment()?)?;
        let mut devices = vec![first];
        if matches!(Selector::from_environment()?, Selector::Auto) && !devices[0].is_emulator() {
            // The driver counts them without gaps.
            devices.extend((1..).map_while(|ordinal| Device::cuda(ordinal).ok()));
        }
        Self::of(devices)
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
        Ok(Self { devices, threads })
    }

    /// So many emulators, each with its own memory: for tests, and for a look at what travels.
    ///
    /// # Errors
    ///
    /// The system gives no threads.
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
    /// A launch that failed since.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.devices.iter().try_for_each(Device::synchronize)
    }

    /// Calls `work` with each device's number, at the same time on the devices' threads.
    pub(super) fn each<R: Send, E: Send>(
        &self,
        work: impl Fn(usize) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        match &self.threads {
            None => Ok(vec![work(0)?]),
            Some(threads) => (threads.broadcast(|context| work(context.index())))
                .into_iter()
                .collect(),
        }
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
        Ok(())
    }
}
