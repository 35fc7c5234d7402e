//! Sizes that the examples refuse.

use anyhow::{Result, ensure};
use std::fs;

/// Refuses what needs more memory than the machine has, before anything is allocated.
pub fn check(what: &str, bytes: u128) -> Result<()> {
    let gigabytes = |bytes: u128| bytes as f64 / 1e9;
    if let Some(available) = available_memory() {
        ensure!(
            bytes <= available,
            "{what}: wanted {:.1} GB of memory, found {:.1} GB available",
            gigabytes(bytes),
            gigabytes(available)
        );
    }
    Ok(())
}

/// The bytes of main memory and swap space that are free or can be freed; `None` if Linux does not tell.
fn available_memory() -> Option<u128> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: u128 = line.strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    };
    Some(bytes("MemAvailable:")? + bytes("SwapFree:").unwrap_or(0))
}
