//! How long a product takes: measured by the GPU, or the host's time of the emulator.

use crate::failure::Result;
use crate::progress;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use warprow::Device;

/// Samples on a GPU, and the runs of each. The host launches the next run while one is in flight, so the time of
/// launches hardly counts.
const SAMPLES: usize = 10;
const RUNS: u32 = 10;

/// The time of a run.
pub enum Time {
    /// The median of samples, by the GPU's clock.
    Measured(Duration),
    /// The host's time, which tells nothing about a GPU.
    Emulated(Duration),
}

impl Time {
    /// Runs `run` once on the emulator, with a bar, or often on a GPU.
    pub fn of(device: &Device, what: &str, mut run: impl FnMut() -> Result<()>) -> Result<Self> {
        if device.is_emulator() {
            let start = Instant::now();
            progress::emulated(device, what, run)?;
            return Ok(Self::Emulated(start.elapsed()));
        }
        let mut times = Vec::with_capacity(SAMPLES);
        run()?;
        for _ in 0..SAMPLES {
            let timer = device.start_timer()?;
            for _ in 0..RUNS {
                run()?;
            }
            times.push(timer.stop()?.unwrap_or_default() / RUNS);
        }
        times.sort_unstable();
        Ok(Self::Measured(times[SAMPLES / 2]))
    }

    /// The time, and how much was done in it.
    pub fn describe(&self, flops: Option<u128>, bytes: u128) -> String {
        match self {
            Self::Emulated(time) => format!("{:.3} s, emulated, no GPU timing", time.as_secs_f64()),
            Self::Measured(time) => {
                let seconds = time.as_secs_f64();
                let per_second = |work: u128| work as f64 / seconds / 1e9;
                let flops = flops.map_or_else(String::new, |flops| {
                    format!("{:.0} GFLOP/s, ", per_second(flops))
                });
                format!(
                    "{:.1} us, the median of {SAMPLES} samples of {RUNS} runs: {flops}{:.0} GB/s",
                    seconds * 1e6,
                    per_second(bytes)
                )
            }
        }
    }

    /// For programs: seconds, and whether they are emulated.
    pub fn json(&self) -> Value {
        let (time, emulated) = match self {
            Self::Measured(time) => (time, false),
            Self::Emulated(time) => (time, true),
        };
        json!({ "seconds": time.as_secs_f64(), "emulated": emulated })
    }
}
