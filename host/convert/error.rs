//! How a conversion fails.

/// Why a matrix cannot be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A number that does not fit 32 bits.
    #[error("too large: {what} is {found}, at most {most} is possible")]
    TooLarge {
        /// What the number is.
        what: &'static str,
        /// The number.
        found: u64,
        /// The greatest possible number.
        most: u64,
    },

    /// An entry outside of the matrix.
    #[error(
        "entry {number} is at row {row}, column {col}, the matrix is {} x {}", .shape.0, .shape.1
    )]
    Outside {
        /// The number of the entry in the list, from 0 on.
        number: usize,
        /// Its row.
        row: usize,
        /// Its column.
        col: usize,
        /// Rows and columns of the matrix.
        shape: (usize, usize),
    },

    /// Two entries at one place, where the caller wants none.
    #[error("row {row}, column {col} has several entries, wanted is one at most")]
    Duplicate {
        /// The row.
        row: usize,
        /// The column.
        col: usize,
    },

    /// The system has no memory for the matrix.
    #[error("no memory for the matrix")]
    OutOfMemory(#[from] std::collections::TryReserveError),

    /// Lists that are no matrix.
    #[error("no sparse matrix: {reason}")]
    Structure {
        /// What is wrong with them.
        reason: String,
    },
}
