//! Reading and writing Matrix Market files.
//!
//! The reader takes the coordinate format of <https://math.nist.gov/MatrixMarket/formats.html>, plain or compressed by
//! gzip; the first byte decides which. The field is `real`, `integer` or `pattern` (all entries are 1), the symmetry
//! `general`, `symmetric` or `skew-symmetric`.
//!
//! Like other readers, it accepts more than the format allows:
//!
//! - The banner may be in any case, begin with a single `%`, and name the fields `double` and `unsigned-integer`.
//! - Lines may end in CRLF and begin with blanks.
//! - Comments and empty lines may be anywhere after the banner. Comments need not be UTF-8.
//! - An entry of a symmetric matrix may be in either triangle.
//!
//! Entries with the same row and column are summed in the order of the file. A number is rounded to the nearest of the
//! element type; for f16 and bf16 it is rounded to f32 first. Memory grows with the size of the file, not with the
//! numbers in its header: see [`ReadOptions`].

mod entries;
mod error;
mod header;
mod write;

pub use crate::output::WriteError;
pub use error::{Problem, ReadError};
pub(crate) use write::write;
pub use write::{Output, write_matrix_market};

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use sprs::CsMatI;

use crate::scalar::Scalar;
use crate::text::{Lines, decompressed};
use crate::triplets;
use header::Header;

/// Reads a Matrix Market file, plain or compressed by gzip, with the default [`ReadOptions`].
///
/// # Errors
///
/// If the file cannot be read, holds no matrix in the format that the [module](self) describes, or exceeds a limit of
/// the options.
pub fn read_matrix_market<T: Scalar>(
    path: impl AsRef<Path>,
) -> Result<CsMatI<T, u32, u32>, ReadError> {
    ReadOptions::default().read(path)
}

/// Reads a Matrix Market file from a reader, plain or compressed by gzip, with the default [`ReadOptions`]. `name`
/// stands for the file in errors.
///
/// # Errors
///
/// As for [`read_matrix_market`].
pub fn parse_matrix_market<T: Scalar>(
    reader: impl BufRead,
    name: &str,
) -> Result<CsMatI<T, u32, u32>, ReadError> {
    ReadOptions::default().parse(reader, name)
}

/// Limits on what is read.
///
/// An entry takes about 50 bytes while the file is read, and a line of text makes at most two entries. Thus the length
/// of the text bounds their memory. Two things could still be large in a small file, and have limits: the row pointer
/// of a matrix with many empty rows, and text compressed by gzip.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    max_entries: u32,
    max_sparse_rows: u32,
    max_gzip_ratio: u32,
}

impl Default for ReadOptions {
    /// 2^32 - 1 entries, 2^26 rows for any number of entries, 100 bytes of text for each byte of gzip.
    fn default() -> Self {
        Self {
            max_entries: u32::MAX,
            max_sparse_rows: 1 << 26,
            max_gzip_ratio: 100,
        }
    }
}

impl ReadOptions {
    /// Maximum number of entries, with both triangles of a symmetric matrix and before duplicates are summed.
    #[must_use]
    pub fn max_entries(mut self, entries: u32) -> Self {
        self.max_entries = entries;
        self
    }

    /// Maximum number of rows of a matrix that has less than one stored entry for every 16 rows. An empty row takes 4
    /// bytes of row pointer: 256 MiB for the default of 2^26 rows.
    #[must_use]
    pub fn max_sparse_rows(mut self, rows: u32) -> Self {
        self.max_sparse_rows = rows;
        self
    }

    /// Maximum number of bytes of text per byte of gzip, if the text is longer than 16 MiB. Matrices reach 10; gzip can
    /// reach 1000.
    #[must_use]
    pub fn max_gzip_ratio(mut self, ratio: u32) -> Self {
        self.max_gzip_ratio = ratio;
        self
    }

    /// Reads a Matrix Market file, plain or compressed by gzip.
    ///
    /// # Errors
    ///
    /// As for [`read_matrix_market`].
    pub fn read<T: Scalar>(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<CsMatI<T, u32, u32>, ReadError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => self.parse(BufReader::with_capacity(1 << 16, file), &name),
            Err(error) => Err(ReadError::Open { file: name, error }),
        }
    }

    /// Reads a Matrix Market file from a reader, plain or compressed by gzip. `name` stands for the file in errors.
    ///
    /// # Errors
    ///
    /// As for [`read_matrix_market`].
    pub fn parse<T: Scalar>(
        &self,
        reader: impl BufRead,
        name: &str,
    ) -> Result<CsMatI<T, u32, u32>, ReadError> {
        match decompressed(reader, self.max_gzip_ratio) {
            Ok(text) => self.parse_lines(Lines::new(text, b"%"), name),
            Err(error) => Err(ReadError::Content {
                file: name.to_owned(),
                line: 1,
                problem: error.into(),
            }),
        }
    }

    fn parse_lines<T: Scalar>(
        &self,
        mut lines: Lines<impl std::io::Read>,
        name: &str,
    ) -> Result<CsMatI<T, u32, u32>, ReadError> {
        let matrix = Header::read(&mut lines).and_then(|header| {
            self.check_rows(&header)?;
            let entries = entries::read(&mut lines, &header, self.max_entries)?;
            triplets::by_rows(header.rows, header.columns, &entries).map_err(Problem::OutOfMemory)
        });
        matrix.map_err(|problem| ReadError::Content {
            file: name.to_owned(),
            line: lines.number(),
            problem,
        })
    }

    /// Counts the entries that the header announces. The row pointer is made after all of them have been read.
    fn check_rows(&self, header: &Header) -> Result<(), Problem> {
        let most = triplets::max_rows(header.entries.into(), self.max_sparse_rows);
        if u64::from(header.rows) > most {
            return Err(Problem::SparseRows {
                rows: header.rows,
                entries: header.entries,
                most,
            });
        }
        Ok(())
    }
}
