//! Times of a launch by the device's own clock.

use std::time::Duration;
use warprow::device::{Device, DeviceError};

/// Work in a sample, at least: a thousand times the resolution of events.
const SAMPLE_TIME: Duration = Duration::from_millis(1);

/// Launches in a sample, at most.
const MAX_LAUNCHES: u32 = 1000;

/// How much is spent on a time.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Work before the first sample, at least: a GPU that idles runs slower at first.
    warm_up: Duration,
    /// Launches before the first sample, at least.
    warm_up_launches: u32,
    /// Samples.
    samples: u32,
    /// Samples of a launch that takes longer than `slow`.
    samples_of_slow: u32,
    slow: Duration,
}

impl Effort {
    /// To find out which of several is the fastest.
    pub const GLANCE: Self = Self {
        warm_up: Duration::from_millis(2),
        warm_up_launches: 2,
        samples: 3,
        samples_of_slow: 1,
        slow: Duration::from_millis(2),
    };

    /// For a result, of that many samples.
    pub const fn of(samples: u32) -> Self {
        Self {
            warm_up: Duration::from_millis(10),
            warm_up_launches: 5,
            samples,
            samples_of_slow: samples,
            slow: Duration::MAX,
        }
    }

    /// The same with another time of work before the first sample.
    pub const fn warmed_up_for(self, warm_up: Duration) -> Self {
        Self { warm_up, ..self }
    }

    /// The same for one of several of which only the fastest counts, where the fastest so far takes so many
    /// milliseconds: three samples of one that takes a tenth more.
    pub fn against(self, fastest: Option<f64>) -> Self {
        let slow = fastest.map(|ms| Duration::from_secs_f64(1.1e-3 * ms));
        Self {
            samples_of_slow: self.samples.min(3),
            slow: slow.unwrap_or(self.slow),
            ..self
        }
    }
}

/// The time of one launch, over samples of several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The median, in milliseconds.
    pub median: f64,
    /// The least, in milliseconds.
    pub min: f64,
    /// The most, in milliseconds.
    pub max: f64,
    /// Samples.
    pub samples: u32,
    /// Launches in each sample.
    pub launches: u32,
}

/// Times `launch`, which must not wait for the device. On the emulator it is run once, and there is no time.
///
/// # Errors
///
/// Those of `launch` and of the device.
pub fn measure<E: From<DeviceError>>(
    device: &Device,
    effort: Effort,
    mut launch: impl FnMut() -> Result<(), E>,
) -> Result<Option<Timing>, E> {
    sample(effort, |launches| {
        let timer = device.start_timer()?;
        for _ in 0..launches {
            launch()?;
        }
        Ok(timer.stop()?)
    })
}

/// Warms up, and takes samples of the time that `batch` takes for a number of launches; `None` if it has no time.
fn sample<E>(
    effort: Effort,
    mut batch: impl FnMut(u32) -> Result<Option<Duration>, E>,
) -> Result<Option<Timing>, E> {
    // The first launch of a kernel has the driver compile it, and the second one may be recorded: their times say
    // nothing of the next ones.
    for _ in 0..2 {
        if batch(1)?.is_none() {
            return Ok(None);
        }
    }
    let (mut launches, mut elapsed, mut warmed_up) = (1, Duration::MAX, Duration::ZERO);
    let mut launched = 2;
    while warmed_up < effort.warm_up || launched < effort.warm_up_launches {
        launches = launches_for(SAMPLE_TIME, elapsed / launches);
        launched += launches;
        let Some(time) = batch(launches)? else {
            return Ok(None);
        };
        // A clock that stands still must not keep the bench here for ever.
        warmed_up += time.max(Duration::from_micros(1));
        elapsed = time;
    }
    let samples = if elapsed / launches > effort.slow {
        effort.samples_of_slow
    } else {
        effort.samples
    };
    let launches = launches_for(SAMPLE_TIME, elapsed / launches);
    let mut times = Vec::new();
    for _ in 0..samples {
        if let Some(time) = batch(launches)? {
            times.push(time.as_secs_f64() * 1e3 / f64::from(launches));
        }
    }
    Ok(summary(times, launches))
}

/// How many launches of that time each take at least `wanted`.
fn launches_for(wanted: Duration, each: Duration) -> u32 {
    let launches = wanted.as_nanos().div_ceil(each.as_nanos().max(1));
    u32::try_from(launches).map_or(MAX_LAUNCHES, |launches| launches.clamp(1, MAX_LAUNCHES))
}

/// Median, least and most of times in milliseconds; `None` if there are none.
pub fn summary(mut times: Vec<f64>, launches: u32) -> Option<Timing> {
    times.sort_unstable_by(f64::total_cmp);
    let (&min, &max) = (times.first()?, times.last()?);
    let middle = times.len() / 2;
    let median = if times.len().is_multiple_of(2) {
        (times[middle - 1] + times[middle]) / 2.0
    } else {
        times[middle]
    };
    Some(Timing {
        median,
        min,
        max,
        samples: times.len() as u32,
        launches,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        let timing = summary(vec![4.0, 1.0, 9.0, 2.0], 7).unwrap();
        assert_eq!((timing.median, timing.min, timing.max), (3.0, 1.0, 9.0));
        assert_eq!((timing.samples, timing.launches), (4, 7));
    }

    #[test]
    fn the_median_of_an_odd_number_is_the_middle_one() {
        assert_eq!(summary(vec![5.0, 1.0, 2.0], 1).unwrap().median, 2.0);
        assert_eq!(summary(vec![5.0], 1).unwrap().median, 5.0);
        assert_eq!(summary(vec![], 1), None);
    }

    #[test]
    fn a_sample_has_enough_launches_and_at_least_one() {
        let each = |nanos| launches_for(SAMPLE_TIME, Duration::from_nanos(nanos));
        assert_eq!(each(300_000), 4);
        assert_eq!(each(1_000_000), 1);
        assert_eq!(each(u64::MAX), 1);
        assert_eq!(each(0), MAX_LAUNCHES);
    }

    #[test]
    fn what_the_first_launches_take_does_not_count() {
        // A launch takes 10 microseconds, the first one a second, and the second one 100 milliseconds.
        let mut done = 0;
        let timing = sample(Effort::of(20), |launches| {
            let extra = match done {
                0 => Duration::from_secs(1),
                1 => Duration::from_millis(100),
                _ => Duration::ZERO,
            };
            done += launches;
            Ok::<_, warprow::Error>(Some(extra + launches * Duration::from_micros(10)))
        });
        let timing = timing.unwrap().unwrap();
        assert_eq!((timing.launches, timing.samples), (100, 20));
        assert!((timing.median - 0.01).abs() < 1e-9 && (timing.max - 0.01).abs() < 1e-9);
    }

    #[test]
    fn what_another_is_faster_than_has_fewer_samples() {
        let samples = |effort: Effort, each: Duration| {
            let timing = sample(effort, |launches| {
                Ok::<_, warprow::Error>(Some(launches * each))
            });
            timing.unwrap().unwrap().samples
        };
        let (fast, slow) = (Duration::from_micros(10), Duration::from_millis(30));
        assert_eq!(samples(Effort::of(20), fast), 20);
        assert_eq!(samples(Effort::of(20), slow), 20);
        assert_eq!(samples(Effort::of(20).against(None), slow), 20);
        assert_eq!(samples(Effort::of(20).against(Some(29.0)), slow), 20);
        assert_eq!(samples(Effort::of(20).against(Some(25.0)), slow), 3);
        assert_eq!(samples(Effort::of(2).against(Some(25.0)), slow), 2);
    }

    #[test]
    fn the_emulator_is_launched_once_and_has_no_time() {
        let device = Device::emulator(Default::default());
        let mut launches = 0;
        let timing = measure(&device, Effort::of(20), || {
            launches += 1;
            Ok::<_, warprow::Error>(())
        });
        assert_eq!(timing.unwrap(), None);
        assert_eq!(launches, 1);
    }
}
