//! Times of a launch whose operands are not in the L2 cache.

use crate::harness::measure::{Timing, summary};
use warprow::device::{Device, DeviceBuffer, DeviceError};

/// So many times as large as the L2 cache is what replaces its contents.
const SIZES_OF_L2: u64 = 2;

/// The L2 cache of a device that does not tell its size.
const DEFAULT_L2_BYTES: u64 = 64 << 20;

/// Launches whose times do not count: the driver compiles a kernel at its first one.
const WARM_UPS: u32 = 2;

/// What replaces the contents of the L2 cache between two launches.
#[derive(Debug)]
pub struct FlushedL2 {
    device: Device,
    other: DeviceBuffer<u8>,
}

impl FlushedL2 {
    /// Of that device.
    ///
    /// # Errors
    ///
    /// Too little device memory.
    pub fn of(device: &Device) -> Result<Self, DeviceError> {
        let l2_bytes = device.properties().l2_bytes.unwrap_or(DEFAULT_L2_BYTES);
        // The emulator has no times, so nothing is flushed there.
        let bytes = if device.is_emulator() {
            0
        } else {
            SIZES_OF_L2 * l2_bytes
        };
        Ok(Self {
            device: device.clone(),
            other: device.uninitialized(bytes as usize)?,
        })
    }

    /// Times single launches, each after other memory was written: all operands come from memory. The time has that of
    /// two events, about two microseconds. The host must be faster than the write before. `None` on the emulator.
    ///
    /// # Errors
    ///
    /// Those of `launch` and of the device.
    pub fn measure<E: From<DeviceError>>(
        &mut self,
        samples: u32,
        mut launch: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<Timing>, E> {
        let mut times = Vec::new();
        if self.device.is_emulator() {
            return Ok(None);
        }
        for sample in 0..WARM_UPS + samples {
            self.other.fill_bytes(sample as u8)?;
            let timer = self.device.start_timer()?;
            launch()?;
            if let Some(time) = timer.stop()?
                && sample >= WARM_UPS
            {
                times.push(time.as_secs_f64() * 1e3);
            }
        }
        Ok(summary(times, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulator_has_no_times() {
        let device = Device::emulator(Default::default());
        let mut launches = 0;
        let timing = FlushedL2::of(&device).unwrap().measure(3, || {
            launches += 1;
            Ok::<_, warprow::Error>(())
        });
        assert_eq!((timing.unwrap(), launches), (None, 0));
    }
}
