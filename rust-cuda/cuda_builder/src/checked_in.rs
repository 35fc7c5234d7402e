//! The archive of an earlier build that is checked in.

use std::fs;
use std::path::{Path, PathBuf};

use ptx_archive::Archive;

use crate::files::FileError;
use crate::stamp::StampError;
use crate::toolchain::DEVICE_RUSTC;
use crate::{BuildError, Inputs, Stamp};

/// The bytes of an archive, and what it was made from.
#[derive(Clone, Debug)]
pub(crate) struct Stamped {
    pub bytes: Vec<u8>,
    pub stamp: Stamp,
}

impl Stamped {
    pub fn read(bytes: Vec<u8>) -> Result<Stamped, StampError> {
        let stamp = Stamp::of(&Archive::open(bytes.clone())?)?;
        Ok(Stamped { bytes, stamp })
    }
}

/// What is at the place where an archive should be.
pub(crate) struct CheckedIn {
    path: PathBuf,
    archive: Result<Stamped, BuildError>,
}

impl CheckedIn {
    pub fn read(path: &Path) -> CheckedIn {
        let archive = || {
            let bytes = fs::read(path).map_err(|e| FileError::new("read", path, e))?;
            Stamped::read(bytes).map_err(|source| BuildError::CheckedIn {
                path: path.to_owned(),
                source,
            })
        };
        CheckedIn {
            path: path.to_owned(),
            archive: archive(),
        }
    }

    /// The archive, whatever it was made from.
    pub fn bytes(self) -> Result<Vec<u8>, BuildError> {
        Ok(self.archive?.bytes)
    }

    /// The archive, if there is one and it was made from these.
    pub fn of_inputs(&self, inputs: &Inputs) -> Option<&Stamped> {
        let archive = self.archive.as_ref().ok()?;
        (archive.stamp.inputs() == inputs).then_some(archive)
    }

    /// The archive, made from whatever. A warning of the build says so, and why no better one was made.
    pub fn stale(self, inputs: &Inputs, reason: &str) -> Result<Vec<u8>, BuildError> {
        let Stamped { bytes, stamp } = self.archive?;
        let difference = stamp.inputs().difference(inputs).unwrap_or("nothing");
        println!("cargo::warning={}", warning(&self.path, difference, reason));
        Ok(bytes)
    }
}

/// One line: cargo shows the first line alone.
fn warning(path: &Path, difference: &str, reason: &str) -> String {
    format!(
        "using {}, WHICH IS NOT THAT OF THE PRESENT SOURCES ({difference} differ): {}. To build the kernels, run \
         `rustup component add rust-src` or set {DEVICE_RUSTC} to a rustc that has its sources.",
        path.display(),
        reason.replace('\n', " "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolchainError;

    #[test]
    fn the_warning_is_one_line_with_difference_reason_and_remedy() {
        let reasons = ["rustc is 1.80.0", "no /usr/bin/rustc", "two\nlines"].map(str::to_owned);
        let reason = ToolchainError::NotFound(reasons.to_vec()).to_string();
        let warning = warning(Path::new("host/ptx/spmm.zip"), "sources", &reason);
        for part in [
            "host/ptx/spmm.zip",
            "NOT THAT OF THE PRESENT SOURCES (sources differ)",
            "rustc is 1.80.0; no /usr/bin/rustc; two lines",
            "rust-src",
            "WARPROW_DEVICE_RUSTC",
        ] {
            assert!(warning.contains(part), "{warning}");
        }
        assert!(!warning.contains('\n'), "{warning}");
    }
}
