//! Sizes that the examples refuse.

use anyhow::{Result, ensure};
use warprow::device::available_host_memory;

/// Refuses what needs more memory than the machine has, before anything is allocated.
pub fn check(what: &str, bytes: u128) -> Result<()> {
    let gigabytes = |bytes: u128| bytes as f64 / 1e9;
    if let Some(available) = available_host_memory().map(u128::from) {
        ensure!(
            bytes <= available,
            "{what}: wanted {:.1} GB of memory, found {:.1} GB available",
            gigabytes(bytes),
            gigabytes(available)
        );
    }
    Ok(())
}
