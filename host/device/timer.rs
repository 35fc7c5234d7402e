//! The time that a device takes, by its own clock.

use super::error::DeviceError;
#[cfg(cuda)]
use super::stream::queue::Queue;
use super::{Backend, Device};
#[cfg(cuda)]
use std::sync::Arc;
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
    events: Option<(super::cuda::Events, Arc<Queue>)>,
}

impl Timer {
    pub(super) fn start(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            #[cfg(cuda)]
            events: match &*device.backend {
                Backend::Emulator(_) => None,
                Backend::Cuda(cuda) => {
                    let queue = device.streams.current();
                    Some((cuda.start_timer(queue.cuda())?, queue))
                }
            },
            device: device.clone(),
        })
    }

    /// Waits until the stream on which it was started has done all its work, and gives the time since the start; `None`
    /// on the emulator, whose time says nothing of a GPU's.
    ///
    /// # Errors
    ///
    /// A launch that failed since.
    pub fn stop(self) -> Result<Option<Duration>, DeviceError> {
        match &*self.device.backend {
            Backend::Emulator(_) => Ok(None),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => match &self.events {
                Some((events, queue)) => cuda.stop_timer(queue.cuda(), events).map(Some),
                None => Ok(None),
            },
        }
    }
}
