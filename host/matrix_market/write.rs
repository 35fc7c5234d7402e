//! Writing Matrix Market files.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use sprs::CsMatViewI;

use super::WriteError;
use crate::scalar::Scalar;

/// Writes a matrix as `coordinate real general`, compressed by gzip if the path ends in `.gz`, whatever its case.
///
/// Reading the file gives the same matrix: numbers are written with the digits that tell them apart, and stored zeros
/// are kept. (Of a NaN its sign and payload may be lost.) The file is written under another name in the same
/// directory and renamed when it is complete, so that `path` never holds half a matrix; a file or a link that was
/// there is replaced.
///
/// # Errors
///
/// If the file cannot be created, written or renamed. What was written so far is removed.
pub fn write_matrix_market<T: Scalar>(
    path: impl AsRef<Path>,
    matrix: CsMatViewI<'_, T, u32, u32>,
) -> Result<(), WriteError> {
    let path = path.as_ref();
    write_whole(path, &matrix).map_err(|error| WriteError {
        file: path.display().to_string(),
        error,
    })
}

fn write_whole<T: Scalar>(path: &Path, matrix: &CsMatViewI<'_, T, u32, u32>) -> io::Result<()> {
    let (partial, file) = PartialFile::create(path)?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    let compressed =
        (path.extension()).is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
    if compressed {
        // The encoder takes few bytes at a time slowly.
        let encoder = GzEncoder::new(writer, Compression::default());
        let mut text = BufWriter::with_capacity(1 << 16, encoder);
        write_text(&mut text, matrix)?;
        writer = text.into_inner()?.finish()?;
    } else {
        write_text(&mut writer, matrix)?;
    }
    writer.into_inner()?.sync_all()?;
    partial.complete(path)
}

fn write_text<T: Scalar>(
    text: &mut impl Write,
    matrix: &CsMatViewI<'_, T, u32, u32>,
) -> io::Result<()> {
    writeln!(text, "%%MatrixMarket matrix coordinate real general")?;
    writeln!(text, "{} {} {}", matrix.rows(), matrix.cols(), matrix.nnz())?;
    for (value, (row, column)) in matrix.iter() {
        // Indices are less than u32::MAX, the most rows or columns.
        writeln!(text, "{} {} {value:?}", row + 1, column + 1)?;
    }
    Ok(())
}

/// A file that is not complete; dropped, it is removed.
struct PartialFile {
    path: PathBuf,
    completed: bool,
}

impl PartialFile {
    /// Creates a file beside `target`, with a name that no other process or thread has.
    fn create(target: &Path) -> io::Result<(Self, File)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "wanted the path of a file",
            ));
        };
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let mut partial = OsString::from(".");
            partial.push(name);
            partial.push(format!(".{}-{count}.partial", process::id()));
            let path = target.with_file_name(partial);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    return Ok((
                        Self {
                            path,
                            completed: false,
                        },
                        file,
                    ));
                }
                // Left by a process that had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn complete(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.completed = true;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.completed {
            // The error that led here is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}
