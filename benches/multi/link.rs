//! What an exchange costs: measured at the start on the first two devices, and predicted from it.

use std::time::Instant;
use warprow::device::{Device, DeviceBuffer, DeviceError};
use warprow::multi::{Devices, SendRows};
use warprow::operand::OperandError;

/// Bytes of the long measurements: 256 MiB.
const LONG: usize = 256 << 20;

/// Copies of one element that follow each other.
const MESSAGES: usize = 16;

/// Measurements of each kind; the fastest one counts.
const SAMPLES: usize = 10;

/// A fixed time, and a time for each byte.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub seconds: f64,
    pub bytes_per_second: f64,
}

impl Cost {
    fn of(few: (usize, f64), many: (usize, f64)) -> Self {
        let slope = (many.1 - few.1).max(1e-9) / (many.0 - few.0) as f64;
        Self {
            seconds: few.1,
            bytes_per_second: 1.0 / slope,
        }
    }
}

/// What an exchange consists of.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Collecting rows that are sent together.
    pub collect: Cost,
    /// A copy from the first device to the second.
    pub copy: Cost,
    /// Seconds in which the host starts a copy.
    pub message: f64,
    /// Seconds between two copies that wait in line on a GPU.
    pub gap: f64,
}

impl Link {
    /// `None` on emulators, and for one device.
    pub fn measure(devices: &Devices, features: usize) -> Result<Option<Self>, OperandError> {
        let (from, Some(to)) = (devices.first(), devices.iter().nth(1)) else {
            return Ok(None);
        };
        if from.is_emulator() || to.is_emulator() {
            return Ok(None);
        }
        let row_bytes = features * size_of::<f32>();
        let rows = (LONG / row_bytes).max(MESSAGES);
        let source = from.zeros::<f32>(rows * features)?;
        let mut target = to.zeros::<f32>(rows * features)?;
        // So many copies of so many rows each.
        let copy = |target: &mut DeviceBuffer<f32>, rows: usize, count: usize| {
            let elements = ..rows * features;
            fastest([from, to], || {
                (0..count).try_for_each(|_| {
                    let mut target = target.slice_mut(elements)?;
                    Ok(target.copy_from(source.slice(elements)?)?)
                })
            })
        };
        let short = copy(&mut target, 1, 1)?;
        let long = copy(&mut target, rows, 1)?;
        let message = (copy(&mut target, 1, MESSAGES)? - short) / (MESSAGES - 1) as f64;
        // Each takes the GPU longer than the host needs to start it.
        let each = (rows / MESSAGES).max(1);
        let in_line = copy(&mut target, each, MESSAGES)?;
        let together = copy(&mut target, each * MESSAGES, 1)?;
        let gap = (in_line - together) / (MESSAGES - 1) as f64;
        drop(target);
        let mut collected = from.zeros::<f32>(rows * features)?;
        let mut collect = |count: usize| {
            // Every other row, twice: rows that are sent are not neighbours.
            let numbers: Vec<u32> = (0..count).map(|row| (2 * row % rows) as u32).collect();
            let send = SendRows::new(from, &numbers, rows)?;
            let mut collected = collected.slice_mut(..count * features)?;
            fastest([from, to], || {
                send.collect(&source, features, &mut collected)
            })
        };
        let (few, many) = (collect(1)?, collect(rows)?);
        Ok(Some(Self {
            collect: Cost::of((row_bytes, few), (rows * row_bytes, many)),
            copy: Cost::of((row_bytes, short), (rows * row_bytes, long)),
            message: message.max(0.0),
            gap: gap.max(0.0),
        }))
    }

    /// The time of an exchange, in milliseconds, of a GPU that has `parts` parts: the bytes that it receives, in that
    /// many messages. It sends as many bytes. While the GPU works, the host starts what follows: the slower one counts.
    pub fn milliseconds(&self, bytes: f64, messages: f64, parts: f64) -> f64 {
        // To start a launch takes as long as to start a copy; nothing hides the first one.
        let host = self.message * (messages + parts - 1.0);
        let moved = bytes / self.collect.bytes_per_second + bytes / self.copy.bytes_per_second;
        1e3 * (self.collect.seconds + host.max(moved + self.gap * messages))
    }
}

/// The least time of the work of two devices.
fn fastest(
    devices: [&Device; 2],
    mut work: impl FnMut() -> Result<(), OperandError>,
) -> Result<f64, OperandError> {
    let wait = || devices.into_iter().try_for_each(Device::synchronize);
    let mut least = f64::INFINITY;
    for _ in 0..SAMPLES {
        wait()?;
        let start = Instant::now();
        work()?;
        wait()?;
        least = least.min(start.elapsed().as_secs_f64());
    }
    Ok::<_, DeviceError>(least).map_err(OperandError::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_counts_bytes_twice_or_the_starts_of_messages_if_these_take_longer() {
        let cost = |seconds, bytes_per_second| Cost {
            seconds,
            bytes_per_second,
        };
        let link = Link {
            collect: cost(3.0, 100.0),
            copy: cost(9.0, 50.0),
            message: 2.0,
            gap: 0.5,
        };
        let moved = 100.0 / 100.0 + 100.0 / 50.0;
        assert_eq!(
            link.milliseconds(100.0, 1.0, 1.0),
            1e3 * (3.0 + moved + 0.5)
        );
        assert_eq!(link.milliseconds(100.0, 6.0, 2.0), 1e3 * (3.0 + 2.0 * 7.0));
    }
}
