//! What the model says of an SpMM: of its exchange, and of all of it, for which it takes the measured times of the
//! kernels.

use super::report::Report;
use serde_json::json;
use warprow_mpi::{Link, Traffic, ranks_per_gpu};

/// Seconds of the parts of a run.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// The exchange alone.
    exchange: f64,
    /// The exchange, if no row had a byte.
    latency: f64,
    /// The rows that need no halo, and the others.
    interior: f64,
    boundary: f64,
}

impl Times {
    /// Seconds of a run of ranks that have a GPU each: it multiplies the interior rows during the exchange.
    fn with_own_gpus(self) -> f64 {
        self.exchange.max(self.interior) + self.boundary
    }

    /// Seconds of a run of ranks that share a GPU. The GPU serves one rank at a time. What an exchange takes without a
    /// byte is mostly turns of the ranks on the GPU, so nothing else runs there. While bytes travel, it multiplies the
    /// rows of ranks that have their halos already: all rows but the boundary of the last rank.
    fn with_shared_gpu(self, ranks: usize) -> f64 {
        let latency = self.latency.min(self.exchange);
        let last = self.boundary / ranks as f64;
        let beside = self.interior + self.boundary - last;
        latency + (self.exchange - latency).max(beside) + last
    }

    /// Seconds of a run on the emulator: kernels and messages all take the host's time.
    fn on_the_host(self) -> f64 {
        self.exchange + self.interior + self.boundary
    }
}

/// Notes the predictions, and what they are made of.
pub fn predict(report: &mut Report<'_>, link: &Link, traffic: Traffic) {
    let (latency, bandwidth) = link.latency_and_bandwidth();
    report.fact("latency_us", latency * 1e6);
    report.fact("gbytes_per_s", bandwidth / 1e9);
    let points = link.curve().iter();
    let points = points.map(|(bytes, seconds)| json!([bytes, seconds * 1e3]));
    report.fact("bytes_and_milliseconds", points.collect::<Vec<_>>());
    let (world, device) = (report.world, report.device);
    let ranks = ranks_per_gpu(world, device);
    report.fact("ranks_per_gpu", ranks);
    let phase = |phase| report.times.of(phase).as_secs_f64();
    let times = Times {
        exchange: world.max(link.seconds(traffic)),
        latency: world.max(link.latency(traffic)),
        interior: phase("interior rows"),
        boundary: phase("boundary rows"),
    };
    let together = match (device.is_emulator(), ranks) {
        (true, _) => times.on_the_host(),
        (false, 1) => times.with_own_gpus(),
        (false, ranks) => times.with_shared_gpu(ranks),
    };
    report.predict("exchange without bytes", times.latency);
    report.predict("exchange", times.exchange);
    report.predict("exchange and computation", together);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times {
        exchange: 10.0,
        latency: 4.0,
        interior: 3.0,
        boundary: 2.0,
    };

    #[test]
    fn a_rank_with_its_own_gpu_multiplies_interior_rows_during_the_exchange() {
        assert_eq!(TIMES.with_own_gpus(), 10.0 + 2.0);
        let many = Times {
            interior: 30.0,
            ..TIMES
        };
        assert_eq!(many.with_own_gpus(), 30.0 + 2.0);
    }

    #[test]
    fn a_shared_gpu_computes_while_bytes_travel_and_not_before() {
        // 3 + 1 of the kernels are beside 6 of bytes.
        assert_eq!(TIMES.with_shared_gpu(2), 4.0 + 6.0 + 1.0);
        let few_bytes = Times {
            exchange: 4.5,
            ..TIMES
        };
        assert_eq!(few_bytes.with_shared_gpu(2), 4.0 + 4.0 + 1.0);
        // A latency above the exchange was chance.
        let none = Times {
            exchange: 2.0,
            ..TIMES
        };
        assert_eq!(none.with_shared_gpu(4), 2.0 + 3.0 + 2.0);
    }
}
