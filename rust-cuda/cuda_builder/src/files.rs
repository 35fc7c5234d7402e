//! Reading and writing files so that a failure names the file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    pub(crate) fn new(action: &'static str, path: &Path, source: io::Error) -> FileError {
        FileError {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(|source| FileError::new("read", path, source))
}

pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    fs::read(path).map_err(|source| FileError::new("read", path, source))
}

/// Writes a file unless it has this content already: cargo then takes it as unchanged.
pub(crate) fn write_if_other(path: &Path, content: &[u8]) -> Result<(), FileError> {
    match fs::read(path) {
        Ok(old) if old == content => Ok(()),
        _ => write_atomically(path, content),
    }
}

/// Writes the whole file or leaves the old one: a reader, and a build that is interrupted, never sees half of it.
fn write_atomically(path: &Path, content: &[u8]) -> Result<(), FileError> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let failed = |source| FileError::new("write", path, source);
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(failed)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(
        ".{}-{}.tmp",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    let temporary = path.with_file_name(name);
    let written = fs::write(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first failure is the one to report; the temporary file may not even exist.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(failed)
}
