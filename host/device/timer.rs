//! The time that a device takes, by its own clock.

use super::error::DeviceError;
use super::{Backend, Device};
use std::time::Duration;

/// A measurement that runs; see [`Device::start_timer`].
///
/// ```
/// # fn main() -> Result<(), warprow::Error> {
/// # let device = warprow::device::Device::open()?;
/// let timer = device.start_timer()?;
/// // launches, as many as it takes to be long against the clock's resolution of half a microsecond
/// match timer.stop()? {
///     Some(elapsed) => println!("{elapsed:?} on the device"),
///     None => println!("the emulator has no time of its own"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Timer {
    device: Device,
    #[cfg(cuda)]
    events: Option<super::cuda::Events>,
}

impl Timer {
    pub(super) fn start(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            #[cfg(cuda)]
            events: match &*device.backend {
                Backend::Emulator(_) => None,
                Backend::Cuda(cuda) => Some(cuda.start_timer()?),
            },
            device: device.clone(),
        })
    }

    /// Waits until the device has done all that it was told, and gives the time since the start; `None` on the
    /// emulator, whose time says nothing of a GPU's.
    ///
    /// # Errors
    ///
    /// A launch that failed since.
    pub fn stop(self) -> Result<Option<Duration>, DeviceError> {
        match &*self.device.backend {
            Backend::Emulator(_) => Ok(None),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => match &self.events {
                Some(events) => cuda.stop_timer(events).map(Some),
                None => Ok(None),
            },
        }
    }
}

#[cfg(cuda)]
impl Drop for Timer {
    fn drop(&mut self) {
        if let Backend::Cuda(cuda) = &*self.device.backend {
            // The events are destroyed next, perhaps on another thread than that which made them.
            let _ = cuda.enter();
        }
    }
}
