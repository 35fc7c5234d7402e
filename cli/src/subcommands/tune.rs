//! `warprow tune`: measures a GPU's memory rate, and writes a profile that plans read.

use crate::commands::Global;
use crate::failure::{Failure, Result};
use crate::output::Out;
use clap::Args;
use std::path::PathBuf;
use warprow::device::{DeviceProfile, PROFILE_VARIABLE};
use warprow::files::write_bytes;
use warprow_benches::plans::measured_rates::copy_rate;

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
    let device = global.open_device(&mut out)?;
    if device.is_emulator() {
        let words =
            "wanted a GPU to measure, found the emulator; host/device/profile has profiles of GPUs";
        return Err(Failure::NoDevice(words.to_owned()));
    }
    let Some(rate) = copy_rate(&device).map_err(Failure::other)? else {
        let words = "wanted 2 GiB of free device memory to copy, found less";
        return Err(Failure::NoDevice(words.to_owned()));
    };
    let mut profile = DeviceProfile::of(&device);
    // At least one GB/s, the unit of the file.
    profile.rates.memory_bytes_per_second = ((rate / COPIES_OF_PEAK) as u64).max(1_000_000_000);
    profile.source =
        "The memory's rate: that of copies, measured by `warprow tune`, divided by 0.89."
            .to_owned();
    write_bytes(&options.output, profile.to_json().as_bytes())?;
    out.line(
        "memory",
        format!("copies read and write {:.0} GB/s", rate / 1e9),
    )?;
    out.line("written", options.output.display())?;
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
    out.finish()?;
    Ok(true)
}
