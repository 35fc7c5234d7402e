//! Writing Matrix Market files.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use sprs::CsMatViewI;

use crate::output::{self, WriteError};
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
pub struct Output(output::Output);

impl Output {
    /// Opens the place: creates an empty file with another name in the same directory, or opens a device or named pipe.
    /// Opening a named pipe waits for its reader.
    ///
    /// # Errors
    ///
    /// If `path` is a directory or socket, or the user may not write it or its directory.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, WriteError> {
        output::Output::create(path.as_ref()).map(Self)
    }

    /// The incomplete file in the same directory; `None` for a device or named pipe. A program that handles signals
    /// removes it before it exits.
    pub fn partial_path(&self) -> Option<&Path> {
        self.0.partial_path()
    }

    /// Writes the matrix, as [`write_matrix_market`] does.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or renamed. The incomplete file is removed.
    pub fn write<T: Scalar>(self, matrix: CsMatViewI<'_, T, u32, u32>) -> Result<(), WriteError> {
        let extension = self.0.path().extension();
        let compressed = extension.is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        self.0.write(|file| write(file, compressed, matrix))
    }
}

/// Writes the matrix into an open file, compressed by gzip or not.
pub(crate) fn write<T: Scalar>(
    file: &mut dyn Write,
    compressed: bool,
    matrix: CsMatViewI<'_, T, u32, u32>,
) -> io::Result<()> {
    if !compressed {
        return write_text(file, &matrix);
    }
    // The encoder is slow if it takes few bytes at a time.
    let encoder = GzEncoder::new(file, Compression::default());
    let mut text = BufWriter::with_capacity(1 << 16, encoder);
    write_text(&mut text, &matrix)?;
    text.into_inner()?.finish()?;
    Ok(())
}

fn write_text<T: Scalar>(
    text: &mut dyn Write,
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
