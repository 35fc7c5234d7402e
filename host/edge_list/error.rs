//! What can be wrong with an edge list.

use std::collections::TryReserveError;
use std::io;

use crate::text::TextError;

/// Why an edge list could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EdgeListError {
    /// The file could not be opened.
    #[error("cannot open {file}: {error}")]
    Open {
        /// The file's path.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// The file's content is wrong, or reading failed.
    #[error("{file}:{line}: {problem}")]
    Content {
        /// The file's path, or the name given for the reader.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong there.
        problem: EdgeListProblem,
    },
}

/// What is wrong in an edge list. Messages quote at most 80 characters of the file and escape control characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EdgeListProblem {
    /// Reading failed.
    #[error("cannot read: {0}")]
    Io(io::Error),
    /// The compressed data ends early or is corrupt.
    #[error("the gzip data is truncated or corrupt: {0}")]
    Gzip(io::Error),
    /// The compressed data expands to too much text.
    #[error(
        "the gzip data stands for more than {most} times as much text; wanted a ratio of at most {most}"
    )]
    GzipRatio {
        /// The greatest ratio.
        most: u32,
    },
    /// A line is too long.
    #[error("wanted a line of less than {most} bytes, found a longer one")]
    LineTooLong {
        /// The length in bytes that no line may reach.
        most: usize,
    },
    /// Something other than a comment is not UTF-8.
    #[error("wanted text in UTF-8, found {found}")]
    NotUtf8 {
        /// The bytes, quoted.
        found: String,
    },
    /// A comment begins as one that gives the shape, and does not.
    #[error(
        "wanted a comment `# shape ROWS COLUMNS` with numbers of less than 2^32, found {found}"
    )]
    Shape {
        /// The comment, quoted.
        found: String,
    },
    /// A row or column index is missing or no whole number.
    #[error("wanted a {what} index, found {found}")]
    NotAnIndex {
        /// `row` or `column`.
        what: &'static str,
        /// What stands in its place.
        found: String,
    },
    /// A row or column index is not of the matrix.
    #[error("wanted a {what} index from 0 to {most}, found {found}")]
    IndexOutOfRange {
        /// `row` or `column`.
        what: &'static str,
        /// The greatest index.
        most: u32,
        /// The index.
        found: String,
    },
    /// An entry of a matrix that has none, as it has no rows or no columns.
    #[error("wanted no entries in a matrix of {rows} rows and {columns} columns, found one")]
    Empty {
        /// The rows.
        rows: u32,
        /// The columns.
        columns: u32,
    },
    /// A weight is no number.
    #[error("wanted a number as the weight, found {found}")]
    NotAWeight {
        /// What stands in its place.
        found: String,
    },
    /// A weight is finite and beyond the range of the element type.
    #[error("wanted a number in the range of {element}, found {found}, which is not representable")]
    NotRepresentable {
        /// The element type.
        element: &'static str,
        /// The weight.
        found: String,
    },
    /// More on a line than belongs there.
    #[error("wanted the end of the line, found {found}")]
    TrailingField {
        /// The first field that is too many.
        found: String,
    },
    /// Lines with a weight beside others without.
    #[error("wanted {wanted} fields, as in line {first_line}, found {found}")]
    Fields {
        /// The fields of the first entry.
        wanted: usize,
        /// Its line.
        first_line: u64,
        /// The fields of this line.
        found: usize,
    },
    /// A symmetric matrix that is not square.
    #[error(
        "wanted as many columns as rows in a symmetric matrix, found {rows} rows and {columns} columns"
    )]
    NotSquare {
        /// The rows.
        rows: u32,
        /// The columns.
        columns: u32,
    },
    /// Many more rows than entries: see [`EdgeListOptions::max_sparse_rows`](super::EdgeListOptions::max_sparse_rows).
    #[error("wanted at most {most} rows with {entries} entries, found {rows}")]
    SparseRows {
        /// The rows that the greatest index, or the shape, wants.
        rows: u32,
        /// The entries there.
        entries: usize,
        /// The most rows for so many entries.
        most: u64,
    },
    /// More than 2^32 - 1 entries, those of the other direction among them.
    #[error("wanted at most 4294967295 entries, found more")]
    TooMany,
    /// The system has not enough memory for the matrix.
    #[error("not enough memory for the matrix: {0}")]
    OutOfMemory(#[from] TryReserveError),
}

impl From<TextError> for EdgeListProblem {
    fn from(error: TextError) -> Self {
        match error {
            TextError::Io(error) => Self::Io(error),
            TextError::Gzip(error) => Self::Gzip(error),
            TextError::GzipRatio { most } => Self::GzipRatio { most },
            TextError::LineTooLong { most } => Self::LineTooLong { most },
            TextError::NotUtf8 { found } => Self::NotUtf8 { found },
        }
    }
}
