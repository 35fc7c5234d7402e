//! The driver's cache of compiled kernels.

use super::checks::Check;
use crate::commands::Global;
use crate::terminal::bytes;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders in a cache are this deep at most.
const DEPTH: u32 = 4;

/// Where the driver keeps what it has compiled: without it, every process compiles its kernels anew.
pub fn all(_: &Global, checks: &mut Vec<Check>) {
    const NAME: &str = "driver's cache";
    if env::var("CUDA_CACHE_DISABLE").is_ok_and(|value| value == "1") {
        let advice =
            "unset CUDA_CACHE_DISABLE: without it, first products take seconds in every process";
        checks.push(Check::missing(NAME, "CUDA_CACHE_DISABLE is 1", advice));
        return;
    }
    let folder = env::var_os("CUDA_CACHE_PATH").map(PathBuf::from);
    let in_home = || Some(PathBuf::from(env::var_os("HOME")?).join(".nv/ComputeCache"));
    checks.push(match folder.or_else(in_home) {
        Some(folder) if folder.is_dir() => {
            let found = format!("{}, {}", folder.display(), bytes(size(&folder, DEPTH)));
            Check::ok(NAME, found)
        }
        Some(folder) => Check::ok(NAME, format!("{}, not there yet", folder.display())),
        None => Check::missing(
            NAME,
            "neither CUDA_CACHE_PATH nor HOME is set",
            "set CUDA_CACHE_PATH to a folder that can be written",
        ),
    });
}

/// Bytes of all files in a folder. What cannot be read counts as nothing.
fn size(folder: &Path, depth: u32) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() && depth > 0 => size(&entry.path(), depth - 1),
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    });
    sizes.sum()
}
