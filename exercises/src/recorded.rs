//! The recorded times of our solutions on a GPU: the file `recorded.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::description::ROOT;

/// The recorded times of our solutions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Recorded {
    /// The name of the GPU.
    pub gpu: String,
    /// The time of each exercise's launches in microseconds.
    pub microseconds: BTreeMap<String, f64>,
}

/// Where the repository keeps them.
#[must_use]
pub fn path() -> PathBuf {
    Path::new(ROOT).join("recorded.toml")
}

impl Recorded {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// It is missing, or is no such file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
        toml::from_str(&text).map_err(|error| failed(&error))
    }

    /// Writes a file.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = toml::to_string(self).map_err(|error| failed(&error))?;
        fs::write(path, text).map_err(|error| failed(&error))
    }
}
