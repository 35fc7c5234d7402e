//! What a launch costs: counters on the emulator, time on a GPU.

use anyhow::{Context, Result};
use std::io::Write;
use std::time::Duration;
use warprow::Device;

/// The time of a kernel on a GPU.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The kernel and its options: `copy_strided, stride 2`.
    pub case: String,
    /// Bytes that the kernel must read and write at least.
    pub bytes: u64,
    /// The median of all samples.
    pub median: Duration,
    /// The shortest sample.
    pub least: Duration,
    /// The longest sample.
    pub most: Duration,
}

/// Samples, and launches of each sample.
const SAMPLES: usize = 20;
const LAUNCHES: u32 = 10;

/// Prints the counters of the last launch on the emulator. On a GPU, calls `launch` often, and prints
/// and returns its time.
///
/// # Errors
///
/// Those of `launch`, of the device, and of `out`.
pub fn cost(
    device: &Device,
    case: String,
    bytes: u64,
    out: &mut dyn Write,
    mut launch: impl FnMut() -> Result<()>,
) -> Result<Option<Measurement>> {
    if device.is_emulator() {
        // Without counters there is nothing to print.
        if let Ok(Some(report)) = device.last_launch_report() {
            write!(out, "\n{report}")?;
        }
        return Ok(None);
    }
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        launch()?;
        let timer = device.start_timer()?;
        for _ in 0..LAUNCHES {
            launch()?;
        }
        samples.push(timer.stop()?.context("a GPU has events")? / LAUNCHES);
    }
    samples.sort_unstable();
    let median = samples[SAMPLES / 2];
    writeln!(
        out,
        "time     {:.1} us, {:.0} GB/s",
        median.as_secs_f64() * 1e6,
        bytes as f64 / median.as_secs_f64() / 1e9
    )?;
    Ok(Some(Measurement {
        case,
        bytes,
        median,
        least: samples[0],
        most: samples[SAMPLES - 1],
    }))
}
