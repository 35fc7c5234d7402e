//! The PTX of an earlier build that is checked in, for where nothing compiles the kernels.

use std::fs;
use std::path::Path;

use crate::toolchain::DEVICE_RUSTC;
use crate::{BuildError, Ptx, files};

/// Whether there is such a file, made from the sources of that hash.
pub(crate) fn is_of(path: &Path, hash: &str) -> bool {
    fs::read_to_string(path)
        .is_ok_and(|text| Ptx::parse_stamp(&text).is_some_and(|stamp| stamp.sources() == hash))
}

/// The PTX of the file, made from whatever sources, and the warning that it is used, for that reason, where the sources have that
/// hash.
pub(crate) fn read(path: &Path, hash: &str, reason: &str) -> Result<(Ptx, String), BuildError> {
    let ptx = Ptx::parse(files::read(path)?).map_err(|source| BuildError::Ptx {
        path: path.to_owned(),
        source,
    })?;
    let warning = warning(path, ptx.stamp().sources() == hash, reason);
    Ok((ptx, warning))
}

/// One line: cargo shows the first line alone.
fn warning(path: &Path, current: bool, reason: &str) -> String {
    let stale = if current {
        ""
    } else {
        ", WHICH IS NOT THAT OF THE PRESENT SOURCES"
    };
    format!(
        "using the PTX checked in as {}{stale}: {}. To build the kernels, run `rustup component add rust-src` or set \
         {DEVICE_RUSTC} to a rustc that has its sources.",
        path.display(),
        reason.replace('\n', " "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolchainError;

    #[test]
    fn the_warning_is_one_line_with_reason_and_remedy_and_says_when_the_ptx_is_stale() {
        let reasons = ["rustc is 1.80.0", "no /usr/bin/rustc"].map(str::to_owned);
        let reason = ToolchainError::NotFound(reasons.to_vec()).to_string();
        let current = warning(Path::new("host/kernels.ptx"), true, &reason);
        for part in [
            "host/kernels.ptx",
            "rustc is 1.80.0; no /usr/bin/rustc",
            "rust-src",
            "WARPROW_DEVICE_RUSTC",
        ] {
            assert!(current.contains(part), "{current}");
        }
        assert!(!current.contains("NOT THAT OF THE PRESENT SOURCES"));
        let stale = warning(Path::new("host/kernels.ptx"), false, "two\nlines");
        assert!(
            stale.contains("NOT THAT OF THE PRESENT SOURCES") && !stale.contains('\n'),
            "{stale}"
        );
    }
}
