//! Times of whole operations by the host's clock, with everything that they allocate.

use crate::harness::measure::{Timing, summary};
use std::time::{Duration, Instant};
use warprow::device::{Device, DeviceError};

/// Samples that are taken even if the budget is spent.
const LEAST_SAMPLES: usize = 3;

/// How much is spent on a time.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    /// Runs before the first sample. The very first run of an operation is not among them.
    pub warm_ups: u32,
    /// Samples, each of one run.
    pub samples: u32,
    /// After this time warm-ups end, and so do samples from the third on.
    pub budget: Duration,
}

/// Times `operation` until the device has finished, and returns what the last run returned. On the emulator it runs
/// once, and there is no time.
///
/// # Errors
///
/// Those of `operation` and of the device.
pub fn measure_whole<R, E: From<DeviceError>>(
    device: &Device,
    runs: Runs,
    mut operation: impl FnMut() -> Result<R, E>,
) -> Result<(Option<Timing>, R), E> {
    let mut last = operation()?;
    if device.is_emulator() {
        return Ok((None, last));
    }
    let started = Instant::now();
    let mut times = Vec::new();
    for run in 0..runs.warm_ups + runs.samples {
        // The result of the run before is freed first: the memory may have room for only one.
        drop(last);
        device.synchronize()?;
        let start = Instant::now();
        last = operation()?;
        device.synchronize()?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let spent = started.elapsed() > runs.budget;
        if run >= runs.warm_ups || spent {
            times.push(milliseconds);
        }
        if spent && times.len() >= LEAST_SAMPLES {
            break;
        }
    }
    Ok((summary(times, 1), last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulator_runs_once_and_has_no_time() {
        let device = Device::emulator(Default::default());
        let runs = Runs {
            warm_ups: 3,
            samples: 5,
            budget: Duration::MAX,
        };
        let mut count = 0;
        let measured = measure_whole(&device, runs, || {
            count += 1;
            Ok::<_, warprow::Error>(count)
        });
        let (timing, result) = measured.unwrap();
        assert_eq!((timing, result, count), (None, 1, 1));
    }
}
