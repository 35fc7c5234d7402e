//! What can be wrong with an npz file.

use std::collections::TryReserveError;
use std::io;

use crate::npy::NpyProblem;

/// Why a matrix could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
#[non_exhaustive]
pub struct NpzError {
    /// The file's path.
    pub file: String,
    /// What is wrong with it.
    pub problem: NpzProblem,
}

/// What is wrong with an npz file. Messages quote at most 80 characters of the file and escape control characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpzProblem {
    /// The system failed to open or read the file.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// The file is no zip file, or a damaged one.
    #[error("no zip file: {0}")]
    Zip(String),
    /// An array is not there.
    #[error("wanted an array `{member}` as scipy.sparse.save_npz writes it, found {found}")]
    Missing {
        /// The array's name.
        member: &'static str,
        /// The names that are there, quoted.
        found: String,
    },
    /// An array is compressed by a method that is not known.
    #[error("array `{member}`: wanted it compressed by deflate or not at all, found {found}")]
    Compression {
        /// The array's name.
        member: &'static str,
        /// The method.
        found: String,
    },
    /// An array cannot be read.
    #[error("array `{member}`: {problem}")]
    Member {
        /// The array's name.
        member: &'static str,
        /// What is wrong with it.
        problem: NpyProblem,
    },
    /// A format of sparse matrices that is not read.
    #[error("wanted the format csr, csc or coo, found {found}")]
    Format {
        /// The format, quoted.
        found: String,
    },
    /// The shape is not that of a matrix, or too large.
    #[error("array `shape`: wanted rows and columns of less than 2^32 each, found {found}")]
    Shape {
        /// The numbers, quoted.
        found: String,
    },
    /// An array has too few or too many elements.
    #[error("array `{member}`: wanted {wanted} elements, found {found}")]
    Length {
        /// The array's name.
        member: &'static str,
        /// The elements that the other arrays need.
        wanted: usize,
        /// The elements there.
        found: usize,
    },
    /// An index is not of the matrix, or a row pointer is less than the one before it.
    #[error(
        "array `{member}`, element {at}: wanted a number from {least} to {most}, found {found}"
    )]
    Number {
        /// The array's name.
        member: &'static str,
        /// The element, counted from 0.
        at: usize,
        /// The least number that is right.
        least: u32,
        /// The greatest number that is right.
        most: u32,
        /// The number.
        found: String,
    },
    /// Many more rows than entries.
    #[error("wanted at most {most} rows with {entries} entries, found {rows}")]
    SparseRows {
        /// The rows declared.
        rows: u32,
        /// The entries there.
        entries: usize,
        /// The most rows for so many entries.
        most: u64,
    },
    /// More entries than a matrix can have.
    #[error("wanted at most {} entries, found {found}", u32::MAX)]
    TooManyEntries {
        /// The entries there.
        found: usize,
    },
    /// The system has not enough memory for the matrix.
    #[error("not enough memory for the matrix: {0}")]
    OutOfMemory(#[from] TryReserveError),
}
