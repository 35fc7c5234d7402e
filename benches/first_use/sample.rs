//! Samples, each in a process of its own.

use crate::first_use::Operation;
use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// The variable that names the folder where the driver keeps machine code.
const CACHE: &str = "CUDA_CACHE_PATH";

/// What a process measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Milliseconds from the open device to the result.
    pub ms: f64,
    /// The modules that the driver compiled, in that order.
    pub modules: Vec<ModuleTime>,
    /// Whether the result is right.
    pub ok: bool,
}

/// How long the driver took for a module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModuleTime {
    /// The module's name in its archive.
    pub module: String,
    /// Milliseconds.
    pub ms: f64,
}

/// Samples with an empty cache of the driver, and with one that an earlier process has filled.
///
/// # Errors
///
/// A process that fails.
pub fn pairs(operation: Operation, samples: u32) -> anyhow::Result<[Vec<Sample>; 2]> {
    let mut pairs = [Vec::new(), Vec::new()];
    for _ in 0..samples {
        let cache = tempfile::tempdir()?;
        for samples in &mut pairs {
            samples.push(in_process(operation, cache.path())?);
        }
    }
    Ok(pairs)
}

/// A sample of this program, run again with the same options.
fn in_process(operation: Operation, cache: &Path) -> anyhow::Result<Sample> {
    let output = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .args(["--sample", operation.name()])
        .env(CACHE, cache)
        .env_remove("CUDA_CACHE_DISABLE")
        .stderr(Stdio::inherit())
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let last = printed.lines().last().unwrap_or_default();
    let name = operation.name();
    ensure!(
        output.status.success(),
        "{name} in its own process: {}, it printed `{last}` last",
        output.status
    );
    serde_json::from_str(last)
        .with_context(|| format!("{name} in its own process printed `{last}`"))
}
