//! Latency and bandwidth of copies from the first device to the second.

use std::time::Instant;
use warprow::device::DeviceError;
use warprow::multi::Devices;

/// Elements of the long copy: 256 MiB.
const LONG: usize = 64 << 20;

/// Copies of each length; the fastest one counts.
const COPIES: usize = 10;

/// A link between two devices.
pub struct Link {
    pub seconds: f64,
    pub bytes_per_second: f64,
}

impl Link {
    /// `None` on emulators, and for one device.
    pub fn measure(devices: &Devices) -> Result<Option<Self>, DeviceError> {
        let (from, Some(to)) = (devices.first(), devices.iter().nth(1)) else {
            return Ok(None);
        };
        if from.is_emulator() || to.is_emulator() {
            return Ok(None);
        }
        let source = from.zeros::<f32>(LONG)?;
        let mut target = to.zeros::<f32>(LONG)?;
        let mut fastest = |length: usize| {
            let mut least = f64::INFINITY;
            for _ in 0..COPIES {
                devices.synchronize()?;
                let start = Instant::now();
                target
                    .slice_mut(..length)?
                    .copy_from(source.slice(..length)?)?;
                devices.synchronize()?;
                least = least.min(start.elapsed().as_secs_f64());
            }
            Ok::<_, DeviceError>(least)
        };
        let (short, long) = (fastest(4)?, fastest(LONG)?);
        let bytes = (LONG * size_of::<f32>()) as f64;
        Ok(Some(Self {
            seconds: short,
            bytes_per_second: bytes / (long - short).max(1e-9),
        }))
    }

    /// The time of so many bytes in so many messages, in milliseconds.
    pub fn milliseconds(&self, bytes: f64, messages: f64) -> f64 {
        1e3 * (bytes / self.bytes_per_second + self.seconds * messages)
    }
}
