//! The host's clock, around work of several devices.

use crate::harness::measure::summary;
use std::time::Instant;
use warprow::Error;
use warprow::device::Device;
use warprow::multi::Devices;

/// The host's clock.
pub struct Clock<'a> {
    devices: &'a Devices,
    /// 0 if nothing is timed.
    pub samples: u32,
}

impl<'a> Clock<'a> {
    /// A clock that takes so many samples; on emulators none.
    pub fn new(devices: &'a Devices, samples: u32) -> Self {
        let timed = !devices.first().is_emulator();
        Self {
            devices,
            samples: if timed { samples } else { 0 },
        }
    }

    /// The result of some work and its milliseconds, until the devices are done; no time on emulators.
    pub fn once<R, E: Into<Error>>(
        &self,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<(R, Option<f64>), Error> {
        self.devices.synchronize()?;
        let start = Instant::now();
        let result = work().map_err(Into::into)?;
        self.devices.synchronize()?;
        let elapsed = start.elapsed().as_secs_f64() * 1e3;
        Ok((result, (self.samples > 0).then_some(elapsed)))
    }

    /// The median of the samples.
    pub fn median<E: Into<Error>>(
        &self,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<f64>, Error> {
        self.median_of(|| Ok(()), |()| work())
    }

    /// The median of the samples of `work`, without the time of what is prepared for each.
    pub fn median_of<P, R, E: Into<Error>>(
        &self,
        mut prepare: impl FnMut() -> Result<P, Error>,
        mut work: impl FnMut(P) -> Result<R, E>,
    ) -> Result<Option<f64>, Error> {
        let mut times = Vec::new();
        for _ in 0..self.samples {
            let prepared = prepare()?;
            times.extend(self.once(|| work(prepared))?.1);
        }
        Ok(summary(times, 1).map(|timing| timing.median))
    }

    /// The largest time of a device divided by the mean, by the devices' own clocks: the median of the samples. `work`
    /// must not wait for devices.
    pub fn imbalance<E: Into<Error>>(
        &self,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<f64>, Error> {
        let mut ratios = Vec::new();
        for _ in 0..self.samples {
            self.devices.synchronize()?;
            let timers = self.devices.iter().map(Device::start_timer);
            let timers: Vec<_> = timers.collect::<Result<_, _>>()?;
            work().map_err(Into::into)?;
            let mut times = Vec::new();
            for timer in timers {
                times.extend(timer.stop()?.map(|time| time.as_secs_f64()));
            }
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            ratios.push(times.iter().copied().fold(0.0, f64::max) / mean);
        }
        Ok(summary(ratios, 1).map(|ratio| ratio.median))
    }
}
