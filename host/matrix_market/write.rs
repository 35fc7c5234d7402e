//! Writing Matrix Market files.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use sprs::CsMatViewI;

use super::WriteError;
use super::output::OutputFile;
use crate::scalar::Scalar;

/// Writes a matrix as `coordinate real general`, compressed by gzip if the path ends in `.gz`, in upper or lower case.
///
/// Reading the file gives the same matrix: each number is written with as many digits as identify it, and stored zeros
/// are kept. (A NaN may lose its sign and payload.)
///
/// The file is written under another name in the same directory and renamed when it is complete. Thus `path` never
/// holds half a matrix. A file that was there is replaced and passes on its mode; symbolic links are followed. A device
/// or named pipe is not replaced: the matrix is written into it.
///
/// To see before a long computation whether the place can be written, use [`Output`].
///
/// # Errors
///
/// If the file cannot be created, written or renamed. The incomplete file is removed.
pub fn write_matrix_market<T: Scalar>(
    path: impl AsRef<Path>,
    matrix: CsMatViewI<'_, T, u32, u32>,
) -> Result<(), WriteError> {
    Output::create(path)?.write(matrix)
}

/// A place that a matrix will be written to, opened before the matrix is there.
///
/// Dropped without [`write`](Self::write), it changes nothing.
pub struct Output {
    path: PathBuf,
    file: OutputFile,
}

impl Output {
    /// Opens the place: creates an empty file with another name in the same directory, or opens a device or named pipe.
    /// Opening a named pipe waits for its reader.
    ///
    /// # Errors
    ///
    /// If `path` is a directory or socket, or the user may not write it or its directory.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, WriteError> {
        let path = path.as_ref().to_owned();
        match OutputFile::create(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(failed(&path, error)),
        }
    }

    /// The incomplete file in the same directory; `None` for a device or named pipe. A program that handles signals
    /// removes it before it exits.
    pub fn partial_path(&self) -> Option<&Path> {
        self.file.partial_path()
    }

    /// Writes the matrix, as [`write_matrix_market`] does.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or renamed. The incomplete file is removed.
    pub fn write<T: Scalar>(self, matrix: CsMatViewI<'_, T, u32, u32>) -> Result<(), WriteError> {
        let extension = self.path.extension();
        let compressed = extension.is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        let written = write_file(&self.file, compressed, &matrix);
        written
            .and_then(|()| self.file.complete())
            .map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &Path, error: io::Error) -> WriteError {
    WriteError {
        file: path.display().to_string(),
        error,
    }
}

fn write_file<T: Scalar>(
    output: &OutputFile,
    compressed: bool,
    matrix: &CsMatViewI<'_, T, u32, u32>,
) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 16, &output.file);
    if compressed {
        // The encoder is slow if it takes few bytes at a time.
        let encoder = GzEncoder::new(writer, Compression::default());
        let mut text = BufWriter::with_capacity(1 << 16, encoder);
        write_text(&mut text, matrix)?;
        writer = text.into_inner()?.finish()?;
    } else {
        write_text(&mut writer, matrix)?;
    }
    writer.flush()
}

fn write_text<T: Scalar>(
    text: &mut impl Write,
    matrix: &CsMatViewI<'_, T, u32, u32>,
) -> io::Result<()> {
    writeln!(text, "%%MatrixMarket matrix coordinate real general")?;
    writeln!(text, "{} {} {}", matrix.rows(), matrix.cols(), matrix.nnz())?;
    for (value, (row, column)) in matrix.iter() {
        // In u64: the last of 2^32 - 1 columns is u32::MAX, and a view may have one more.
        let (row, column) = (u64::from(row) + 1, u64::from(column) + 1);
        writeln!(text, "{row} {column} {value:?}")?;
    }
    Ok(())
}
