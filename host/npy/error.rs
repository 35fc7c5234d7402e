//! What can be wrong with an npy file.

use std::collections::TryReserveError;
use std::io;

use super::header::MAX_HEADER;

/// Why an array could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
#[non_exhaustive]
pub struct NpyError {
    /// The file's path.
    pub file: String,
    /// What is wrong with it.
    pub problem: NpyProblem,
}

/// What is wrong with an npy file. Messages quote at most 80 characters of the file and escape control characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyProblem {
    /// The system failed to open or read the file.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// The file does not begin as an npy file does.
    #[error("wanted `\\x93NUMPY` and a version at the start, found {found}")]
    Magic {
        /// The first bytes, quoted.
        found: String,
    },
    /// A version of the format that is not known.
    #[error("wanted version 1, 2 or 3 of the format, found {found}")]
    Version {
        /// The major version.
        found: u8,
    },
    /// The header is longer than any array needs.
    #[error("wanted a header of at most {MAX_HEADER} bytes, found one of {found}")]
    LongHeader {
        /// Its length in bytes.
        found: u32,
    },
    /// The file ends within its header.
    #[error("wanted a header of {wanted} bytes, found the end of the file after {found}")]
    ShortHeader {
        /// The header's length in bytes, as the file declares it.
        wanted: u32,
        /// The bytes there.
        found: usize,
    },
    /// The header is not the dictionary that the format prescribes.
    #[error("wanted {wanted} in the header, found {found}")]
    Header {
        /// What the format prescribes.
        wanted: &'static str,
        /// What is there, quoted.
        found: String,
    },
    /// The elements are of a type that is not read.
    #[error("wanted elements of {wanted}, found {found}")]
    Type {
        /// The types that are read.
        wanted: &'static str,
        /// The type, quoted.
        found: String,
    },
    /// The array has another number of axes.
    #[error("wanted an array of {wanted} axes, found one of shape {found}")]
    Axes {
        /// The number of axes.
        wanted: usize,
        /// The shape, quoted.
        found: String,
    },
    /// The shape has more elements than the address space has room for.
    #[error("wanted a shape that fits into memory, found {found}")]
    TooLarge {
        /// The shape, quoted.
        found: String,
    },
    /// The file ends before the last element.
    #[error("wanted {wanted} bytes of numbers after the header, found {found}")]
    Truncated {
        /// The bytes that the shape needs.
        wanted: u64,
        /// The bytes there.
        found: u64,
    },
    /// The file goes on after the last element.
    #[error("wanted the end of the file after {wanted} bytes of numbers, found more")]
    TooLong {
        /// The bytes that the shape needs.
        wanted: u64,
    },
    /// The system has not enough memory for the array.
    #[error("not enough memory for the array: {0}")]
    OutOfMemory(#[from] TryReserveError),
}
