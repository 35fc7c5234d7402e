//! Writing edge lists.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use sprs::CsMatViewI;

use super::Separator;
use crate::output::{Output, WriteError};
use crate::scalar::Scalar;

/// Writes a matrix as an edge list with weights: commas in a `.csv` file, else tabs; compressed by gzip if the path
/// ends in `.gz`. The first line is a comment with the shape.
///
/// Reading the file gives the same matrix: each number is written with as many digits as identify it, and stored zeros
/// are kept. (A NaN may lose its sign and payload.)
///
/// The file is written under another name in the same directory and renamed when it is complete, as
/// [`write_matrix_market`](crate::matrix_market::write_matrix_market) does.
///
/// # Errors
///
/// If the file cannot be created, written or renamed. The incomplete file is removed.
pub fn write_edge_list<T: Scalar>(
    path: impl AsRef<Path>,
    matrix: CsMatViewI<'_, T, u32, u32>,
) -> Result<(), WriteError> {
    let path = path.as_ref();
    let separator = Separator::of(path);
    let extension = path.extension();
    let compressed = extension.is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
    Output::create(path)?.write(|file| write_entries(file, separator, compressed, matrix))
}

/// Writes a matrix into an open file, compressed by gzip or not.
pub(crate) fn write_entries<T: Scalar>(
    file: &mut dyn Write,
    separator: Separator,
    compressed: bool,
    matrix: CsMatViewI<'_, T, u32, u32>,
) -> io::Result<()> {
    if !compressed {
        return write_text(file, separator, matrix);
    }
    // The encoder is slow if it takes few bytes at a time.
    let encoder = GzEncoder::new(file, Compression::default());
    let mut text = BufWriter::with_capacity(1 << 16, encoder);
    write_text(&mut text, separator, matrix)?;
    text.into_inner()?.finish()?;
    Ok(())
}

fn write_text<T: Scalar>(
    text: &mut dyn Write,
    separator: Separator,
    matrix: CsMatViewI<'_, T, u32, u32>,
) -> io::Result<()> {
    let between = match separator {
        Separator::Blanks => '\t',
        Separator::Comma => ',',
    };
    writeln!(text, "# shape {} {}", matrix.rows(), matrix.cols())?;
    for (value, (row, column)) in matrix.iter() {
        writeln!(text, "{row}{between}{column}{between}{value:?}")?;
    }
    Ok(())
}
