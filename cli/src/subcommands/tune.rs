//! `warprow tune`: measures a GPU's memory, L2 cache and launches, and writes a profile that plans read.

use crate::commands::Global;
use crate::failure::{Failure, Result};
use crate::output::Out;
use crate::results;
use clap::Args;
use std::path::PathBuf;
use warprow::device::{DeviceProfile, PROFILE_VARIABLE};
use warprow_benches::plans::measured_rates::launch_ms;
use warprow_benches::spmm::floors::Floors;
use warprow_benches::spmm::gather_limit;

pub const EXAMPLES: &str = "\
Examples:
  warprow tune --output gpu.json
  WARPROW_PROFILE=gpu.json warprow info graph.mtx

The folder host/device/profile of the repository has profiles of other GPUs.";

#[derive(Args)]
pub struct Options {
    /// The file for the profile
    #[arg(long, value_name = "FILE.json")]
    output: PathBuf,
}

/// The part of the memory's peak rate that copies reach on an H100 (0.90) and an H200 (0.88). The cost model counts in
/// peak rates.
const COPIES_OF_PEAK: f64 = 0.89;

pub fn run(options: &Options, global: &Global) -> Result<bool> {
    let mut out = Out::new(global);
    let place = results::bytes(Some(&options.output), &mut out)?;
    let device = global.open_device(&mut out)?;
    if device.is_emulator() {
        let words =
            "wanted a GPU to measure, found the emulator; host/device/profile has profiles of GPUs";
        return Err(Failure::NoDevice(words.to_owned()));
    }
    gather_limit::load(&device)?;
    let Some(floors) = Floors::measure(&device).map_err(Failure::other)? else {
        let words = "wanted 2 GiB of free device memory to copy, found less";
        return Err(Failure::NoDevice(words.to_owned()));
    };
    let mut profile = DeviceProfile::of(&device);
    // At least one GB/s, the unit of the file.
    let at_least_one_gb = |rate: f64| (rate as u64).max(1_000_000_000);
    let (copies, l2) = (floors.memory_rate(), floors.l2_rate());
    profile.rates.memory_bytes_per_second = at_least_one_gb(copies / COPIES_OF_PEAK);
    profile.rates.l2_bytes_per_second = Some(at_least_one_gb(l2));
    let launch = launch_ms(&device).map_err(Failure::other)?;
    let launch = launch.map(|ms| (ms * 1e6).round().max(1.0) as u32);
    profile.rates.launch_nanoseconds = launch;
    profile.source = "Measured by `warprow tune`: the memory's rate (that of copies, divided by 0.89), the L2 cache's \
                      and the time of a launch. Sizes as the driver reports them, or of a GPU of the same \
                      generation; partitions of the L2 cache as of GPUs with the same compute capability."
        .to_owned();
    out.line(
        "memory",
        format!("copies read and write {:.0} GB/s", copies / 1e9),
    )?;
    out.line("L2 cache", format!("gathers read {:.0} GB/s", l2 / 1e9))?;
    if let Some(launch) = launch {
        out.line("launch", format!("{:.1} us", f64::from(launch) * 1e-3))?;
    }
    if let Some(place) = place {
        place.write_bytes(profile.to_json().as_bytes(), &mut out)?;
    }
    out.paragraph(
        "",
        format!(
            "{PROFILE_VARIABLE}={} makes plans by it",
            options.output.display()
        ),
    )?;
    out.value(
        "memory_bytes_per_second",
        profile.rates.memory_bytes_per_second,
    );
    out.value("l2_bytes_per_second", profile.rates.l2_bytes_per_second);
    out.value("launch_nanoseconds", launch);
    out.finish()?;
    Ok(true)
}
