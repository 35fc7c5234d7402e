//! A model of the exchange between ranks: what it costs, from measurements at the start of a run.
//!
//! At the start all ranks send rows to all others, a few sizes in turn, through the transport and with the kernels of
//! the run. A later exchange is predicted from its bytes, by a line between two sizes, and from its number of messages.

use super::{HaloExchange, Traffic};
use crate::transport::Transport;
use crate::world::{Word, World};
use anyhow::{Context, Result};
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::time::Instant;
use warprow::multi::{Halo, Owners};
use warprow::{Device, Element, Scalar};

/// Bytes that a rank owns in each measurement, and sends to each other rank.
const SIZES: [usize; 5] = [1, 16 << 10, 128 << 10, 1 << 20, 8 << 20];

/// On the emulator, whose kernels take a thousand times as long.
const EMULATOR_SIZES: usize = 3;

/// Exchanges of each size; the fastest one counts, on the slowest rank.
const SAMPLES: usize = 9;

/// What exchanges cost between the ranks of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Bytes that a rank sends or receives, and the seconds of an exchange with all others; ascending.
    curve: Vec<(f64, f64)>,
    /// Seconds for each further message.
    message: f64,
    /// Seconds for each byte of a rank's own rows.
    own_byte: f64,
    others: usize,
    row_bytes: usize,
}

impl Link {
    /// Measures exchanges of rows with so many features; `None` if there is one rank.
    ///
    /// # Errors
    ///
    /// A device without memory; the driver's.
    pub fn measure<T: Scalar + Element + Word>(
        world: &World,
        device: &Device,
        transport: &Rc<dyn Transport<T>>,
        features: usize,
    ) -> Result<Option<Self>> {
        let ranks = NonZeroUsize::new(world.size()).context("a run has a rank")?;
        let others = ranks.get() - 1;
        let row_bytes = features * size_of::<T>();
        if others == 0 || row_bytes == 0 {
            return Ok(None);
        }
        let time = |rows: usize, halo: &Halo| {
            let exchange = HaloExchange::plan(world, device, halo, transport)?;
            let own = device.zeros::<T>(rows * features)?;
            let mut fastest = f64::INFINITY;
            for _ in 0..=SAMPLES {
                world.barrier();
                let started = Instant::now();
                exchange.run(world, &own, features, || Ok(()))?;
                device.synchronize()?;
                fastest = world.max(started.elapsed().as_secs_f64()).min(fastest);
            }
            Ok::<_, anyhow::Error>(fastest)
        };
        let equal = |rows: usize| Owners::equal(rows * ranks.get(), ranks);
        let sizes = if device.is_emulator() {
            EMULATOR_SIZES
        } else {
            SIZES.len()
        };
        let rows_of = |size: usize| size.div_ceil(row_bytes);
        // Without a halo an exchange copies a rank's own rows.
        let (few, many) = (1, rows_of(SIZES[sizes - 1]).max(2));
        let [least, most] = [few, many].map(|rows| {
            let owners = equal(rows);
            time(rows, &Halo::new(world.rank(), &owners, &[]))
        });
        let (least, most) = (least?, most?);
        let own_byte = ((most - least) / ((many - few) * row_bytes) as f64).max(0.0);
        let mut curve = Vec::new();
        for &size in &SIZES[..sizes] {
            let rows = rows_of(size);
            let halo = Halo::replicated(world.rank(), &equal(rows));
            let seconds = time(rows, &halo)? - own_byte * (rows * row_bytes) as f64;
            curve.push(((rows * row_bytes * others) as f64, seconds.max(0.0)));
        }
        curve.dedup_by(|a, b| a.0 <= b.0);
        ascend(&mut curve);
        Ok(Some(Self {
            message: ((curve[0].1 - least) / others as f64).max(0.0),
            curve,
            own_byte,
            others,
            row_bytes,
        }))
    }

    /// Seconds of an exchange on a rank.
    pub fn seconds(&self, traffic: Traffic) -> f64 {
        let bytes = (traffic.sent.max(traffic.received) * self.row_bytes) as f64;
        let own = self.own_byte * (traffic.own * self.row_bytes) as f64;
        let missing = self.others.saturating_sub(traffic.messages) as f64;
        own + (line_through(&self.curve, bytes) - self.message * missing).max(0.0)
    }

    /// Seconds of an exchange on a rank before its first byte moves: its messages, and the copy of its own rows.
    pub fn latency(&self, traffic: Traffic) -> f64 {
        self.seconds(Traffic {
            sent: 0,
            received: 0,
            ..traffic
        })
    }

    /// What was measured: the bytes that a rank sends to all others together, and the seconds of the exchange without
    /// the copy of its own rows.
    pub fn curve(&self) -> &[(f64, f64)] {
        &self.curve
    }

    /// Seconds of an exchange with so little that only messages count, and bytes per second of one with much.
    pub fn latency_and_bandwidth(&self) -> (f64, f64) {
        let [.., (bytes, seconds), (most_bytes, most_seconds)] = self.curve[..] else {
            return (self.curve[0].1, f64::INFINITY);
        };
        let slope = (most_seconds - seconds) / (most_bytes - bytes);
        (self.curve[0].1, 1.0 / slope.max(f64::MIN_POSITIVE))
    }
}

/// Lowers each point to the lowest one behind it: fewer bytes do not take longer, so that was chance.
fn ascend(curve: &mut [(f64, f64)]) {
    let mut least = f64::INFINITY;
    for point in curve.iter_mut().rev() {
        least = least.min(point.1);
        point.1 = least;
    }
}

/// The value at `x` of the line between the neighbouring points of a curve, or of its first or last line.
fn line_through(curve: &[(f64, f64)], x: f64) -> f64 {
    let [first, .., _] = curve else {
        return curve.first().map_or(0.0, |point| point.1);
    };
    if x <= first.0 {
        return first.1;
    }
    let next = curve
        .partition_point(|point| point.0 < x)
        .clamp(1, curve.len() - 1);
    let ((x0, y0), (x1, y1)) = (curve[next - 1], curve[next]);
    y0 + (y1 - y0) * (x - x0) / (x1 - x0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_its_points_and_beyond_the_last() {
        let curve = [(1.0, 10.0), (3.0, 14.0), (5.0, 24.0)];
        for (x, y) in [
            (0.0, 10.0),
            (1.0, 10.0),
            (2.0, 12.0),
            (3.0, 14.0),
            (4.0, 19.0),
            (7.0, 34.0),
        ] {
            assert_eq!(line_through(&curve, x), y, "at {x}");
        }
        assert_eq!(line_through(&curve[..1], 2.0), 10.0);
    }

    #[test]
    fn a_point_above_a_later_one_is_lowered_and_others_stay() {
        let mut curve = [(1.0, 5.0), (2.0, 3.0), (3.0, 4.0), (4.0, 9.0)];
        ascend(&mut curve);
        assert_eq!(curve, [(1.0, 3.0), (2.0, 3.0), (3.0, 4.0), (4.0, 9.0)]);
    }

    #[test]
    fn a_prediction_has_the_bytes_the_own_rows_and_the_messages() {
        let link = Link {
            curve: vec![(0.0, 10.0), (100.0, 20.0)],
            message: 2.0,
            own_byte: 0.5,
            others: 3,
            row_bytes: 10,
        };
        let all = Traffic {
            own: 4,
            sent: 2,
            received: 5,
            messages: 3,
        };
        assert_eq!(link.seconds(all), 0.5 * 40.0 + 15.0);
        assert_eq!(
            link.seconds(Traffic { messages: 1, ..all }),
            0.5 * 40.0 + 15.0 - 4.0
        );
        assert_eq!(link.latency_and_bandwidth(), (10.0, 10.0));
        assert_eq!(link.latency(all), 0.5 * 40.0 + 10.0);
    }
}
