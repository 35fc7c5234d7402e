//! The host's free memory.

use std::fs;

/// Bytes of main memory and swap space that are free or can be freed; `None` if the system does not tell. The emulator
/// keeps its buffers there.
#[must_use]
pub fn available_host_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: u64 = line.strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024)
    };
    bytes("MemAvailable:")?.checked_add(bytes("SwapFree:").unwrap_or(0))
}
