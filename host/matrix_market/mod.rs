//! Reading and writing Matrix Market files.
//!
//! The coordinate format of <https://math.nist.gov/MatrixMarket/formats.html> is read, as plain text or compressed by
//! gzip (told apart by their first byte, not by the file's name), with a field of `real`, `integer` or `pattern`
//! (whose entries are 1) and a symmetry of `general`, `symmetric` or `skew-symmetric`.
//!
//! Beyond the format's letter, and as other readers do: the banner is read without regard to case, may begin with a
//! single `%`, and may name the fields `double` and `unsigned-integer`; lines may end in CRLF and begin with blanks;
//! comments and empty lines may stand anywhere after the banner and comments need not be UTF-8; an entry of a symmetric
//! matrix may be in either triangle. Entries with the same row and column are summed in the order of the file. A
//! number is rounded once, to the nearest of the element type; to f16 and bf16 by way of f32, twice.
//!
//! The memory taken is in the order of the input's size, whatever a header announces: see [`ReadOptions`].

mod compress;
mod entries;
mod error;
mod gzip;
mod header;
mod lines;
mod output;
mod write;

pub use error::{Problem, ReadError, WriteError};
pub use write::{Output, write_matrix_market};

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use sprs::CsMatI;

use crate::scalar::Scalar;
use gzip::BoundedGzip;
use header::Header;
use lines::Lines;

/// The first byte of a gzip file; no Matrix Market file begins with it.
const GZIP_MAGIC: u8 = 0x1f;

/// Reads a Matrix Market file, plain or compressed by gzip, with the default [`ReadOptions`].
///
/// # Errors
///
/// If the file cannot be read, is not a matrix of the format described in the [module](self), or goes beyond a limit of
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
/// Entries take memory as they are read, about 50 bytes each, and a line of text makes at most two, so that the text's
/// length bounds what they take. Two things could be large in a small file, and have limits of their own: a row
/// pointer for rows without entries, and text compressed by gzip.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    max_entries: u32,
    max_sparse_rows: u32,
    max_gzip_ratio: u32,
}

/// A matrix of more rows than [`ReadOptions::max_sparse_rows`] needs an entry for each so many rows.
const ROWS_PER_ENTRY: u64 = 16;

/// The most rows: `sprs` wants the row pointer's length to fit u32.
const MAX_ROWS: u32 = u32::MAX - 1;

/// The most columns.
const MAX_COLUMNS: u32 = u32::MAX;

impl Default for ReadOptions {
    /// As many entries as u32 counts, 2^26 rows whatever the entries, 100 bytes of text for a byte of gzip.
    fn default() -> Self {
        Self {
            max_entries: u32::MAX,
            max_sparse_rows: 1 << 26,
            max_gzip_ratio: 100,
        }
    }
}

impl ReadOptions {
    /// The most entries, counted after the other triangle of a symmetric matrix is filled in and before duplicates are
    /// summed.
    #[must_use]
    pub fn max_entries(mut self, entries: u32) -> Self {
        self.max_entries = entries;
        self
    }

    /// The most rows of a matrix that has less than one stored entry for every 16 rows. A row takes 4 bytes of row
    /// pointer though it has no entry: 256 MiB for the default's 2^26 rows.
    #[must_use]
    pub fn max_sparse_rows(mut self, rows: u32) -> Self {
        self.max_sparse_rows = rows;
        self
    }

    /// The most bytes of text that a byte of gzip may stand for, once the text is beyond 16 MiB. Matrices reach 10;
    /// the compression itself could reach 1000.
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
        mut reader: impl BufRead,
        name: &str,
    ) -> Result<CsMatI<T, u32, u32>, ReadError> {
        let compressed = match reader.fill_buf() {
            Ok(start) => start.first() == Some(&GZIP_MAGIC),
            Err(error) => {
                return Err(ReadError::Content {
                    file: name.to_owned(),
                    line: 1,
                    problem: Problem::Io(error),
                });
            }
        };
        if compressed {
            let text = BoundedGzip::new(reader, self.max_gzip_ratio);
            self.parse_lines(Lines::new(text), name)
        } else {
            self.parse_lines(Lines::new(reader), name)
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
            compress::by_rows(header.rows, header.columns, &entries)
        });
        matrix.map_err(|problem| ReadError::Content {
            file: name.to_owned(),
            line: lines.number(),
            problem,
        })
    }

    /// Only announced entries are counted here; that they are there is checked before the row pointer is made.
    fn check_rows(&self, header: &Header) -> Result<(), Problem> {
        let most = (u64::from(header.entries) * ROWS_PER_ENTRY).max(self.max_sparse_rows.into());
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
