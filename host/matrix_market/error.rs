//! What can be wrong with a Matrix Market file.

use std::collections::TryReserveError;
use std::io;

use crate::text::TextError;

/// Why a matrix could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
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
        /// The line, counted from 1; if something is missing at the end, the last line.
        line: u64,
        /// What is wrong there.
        problem: Problem,
    },
}

/// What is wrong in a Matrix Market file. Messages quote at most 80 characters of the file and escape control
/// characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Reading failed.
    #[error("cannot read: {0}")]
    Io(io::Error),
    /// The compressed data ends early or is corrupt.
    #[error("the gzip data is truncated or corrupt: {0}")]
    Gzip(io::Error),
    /// The compressed data expands to too much text: see
    /// [`ReadOptions::max_gzip_ratio`](super::ReadOptions::max_gzip_ratio).
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
    /// The first line is no banner.
    #[error(
        "wanted the banner `%%MatrixMarket matrix coordinate <field> <symmetry>`, found {found}"
    )]
    Banner {
        /// The line.
        found: String,
    },
    /// The banner names an object, format, field or symmetry that the reader does not support.
    #[error("wanted {wanted} as the {what}, found {found}")]
    Unsupported {
        /// `object`, `format`, `field` or `symmetry`.
        what: &'static str,
        /// What the reader supports.
        wanted: &'static str,
        /// The word, quoted.
        found: String,
    },
    /// A pattern cannot be skew-symmetric: it has no signs.
    #[error("wanted a real or integer field with skew-symmetric, found `pattern`")]
    SkewPattern,
    /// The line with the size is missing or is not three counts.
    #[error("wanted the size line `rows columns entries`, found {found}")]
    Size {
        /// The line.
        found: String,
    },
    /// Rows, columns or entries are more than can be stored, or than the options allow.
    #[error("wanted at most {most} {what}, found {found}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        most: u32,
        /// The count, capped at the greatest u64.
        found: u64,
    },
    /// A symmetric or skew-symmetric matrix that is not square.
    #[error(
        "wanted as many columns as rows in a {symmetry} matrix, found {rows} rows and {columns} columns"
    )]
    NotSquare {
        /// The symmetry.
        symmetry: &'static str,
        /// The rows.
        rows: u32,
        /// The columns.
        columns: u32,
    },
    /// Many more rows than entries: see [`ReadOptions::max_sparse_rows`](super::ReadOptions::max_sparse_rows).
    #[error(
        "wanted at most {most} rows with {entries} entries, found {rows}; ReadOptions::max_sparse_rows raises the limit"
    )]
    SparseRows {
        /// The rows announced.
        rows: u32,
        /// The entries announced.
        entries: u32,
        /// The most rows for so many entries.
        most: u64,
    },
    /// A row or column index is missing or not a number.
    #[error("wanted a {what} index, found {found}")]
    NotAnIndex {
        /// `row` or `column`.
        what: &'static str,
        /// What stands in its place.
        found: String,
    },
    /// A row or column index is not of the matrix; 0 is not, indices count from 1.
    #[error("wanted a {what} index from 1 to {most}, found {found}")]
    IndexOutOfRange {
        /// `row` or `column`.
        what: &'static str,
        /// The rows or columns of the matrix.
        most: u32,
        /// The index.
        found: String,
    },
    /// A value is missing or not a number of the field.
    #[error("wanted a value of the field `{field}`, found {found}")]
    NotAValue {
        /// `real` or `integer`.
        field: &'static str,
        /// What stands in its place.
        found: String,
    },
    /// A value is finite and beyond the range of the element type.
    #[error("wanted a number in the range of {element}, found {found}, which is not representable")]
    NotRepresentable {
        /// The element type.
        element: &'static str,
        /// The value.
        found: String,
    },
    /// More on a line than belongs there.
    #[error("wanted the end of the line, found {found}")]
    TrailingField {
        /// The first field that is too many.
        found: String,
    },
    /// An entry on the diagonal of a skew-symmetric matrix, where only zeros are.
    #[error("wanted no entry on the diagonal of a skew-symmetric matrix, found ({index}, {index})")]
    SkewDiagonal {
        /// Its row and column, counted from 1.
        index: u32,
    },
    /// The file ends before all entries were read.
    #[error("wanted {wanted} entries, found the end of the file after {found}")]
    TooFewEntries {
        /// The entries announced.
        wanted: u32,
        /// The entries read.
        found: u32,
    },
    /// There is another line after the last entry.
    #[error("wanted the end of the file after {wanted} entries, found {found}")]
    TooManyEntries {
        /// The entries announced.
        wanted: u32,
        /// The line.
        found: String,
    },
    /// The system has not enough memory for the matrix.
    #[error("not enough memory for the matrix: {0}")]
    OutOfMemory(TryReserveError),
}

impl From<TextError> for Problem {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_an_error_of_their_own() {
        let found = "`caf\\xe9`".to_owned();
        let problem = Problem::from(TextError::NotUtf8 { found });
        assert_eq!(
            problem.to_string(),
            "wanted text in UTF-8, found `caf\\xe9`"
        );
    }
}
