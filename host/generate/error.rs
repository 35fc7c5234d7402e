//! Why a matrix could not be generated.

use super::Communities;

/// Why a matrix could not be generated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The host has too little memory for the matrix.
    #[error("out of memory on the host: a {rows} x {columns} matrix wants {wanted} bytes")]
    OutOfMemory {
        /// The rows.
        rows: usize,
        /// The columns.
        columns: usize,
        /// Bytes wanted, with those for the making.
        wanted: u128,
    },
    /// A dense matrix whose rows or columns no array counts, though the matrix has no elements.
    #[error(
        "wanted at most {most} rows and columns in a dense matrix, found {rows} x {columns}",
        most = isize::MAX
    )]
    DenseShape {
        /// The rows.
        rows: usize,
        /// The columns.
        columns: usize,
    },
    /// The length of the row pointer does not fit u32.
    #[error("wanted at most {most} rows, found {found}", most = u32::MAX - 1)]
    TooManyRows {
        /// The rows asked for.
        found: u32,
    },
    /// More nonzeros than the matrix has entries, or than u32 can count.
    #[error("wanted at most {most} nonzeros in a {rows} x {columns} matrix, found {found}")]
    TooManyNonzeros {
        /// The rows.
        rows: u32,
        /// The columns.
        columns: u32,
        /// The maximum number of nonzeros.
        most: u64,
        /// The nonzeros asked for.
        found: u64,
    },
    /// The probabilities of an R-MAT graph are not four probabilities of sum 1.
    #[error("wanted four probabilities with the sum 1, found {found:?}")]
    Probabilities {
        /// The numbers.
        found: [f64; 4],
    },
    /// The sizes or the fraction of [`Communities`] are invalid.
    #[error(
        "wanted communities of sizes from at least 1 up and a fraction inside from 0 to 1, \
         found sizes from {} to {} and the fraction {}",
        found.sizes.start(), found.sizes.end(), found.inside
    )]
    Communities {
        /// What was asked for.
        found: Communities,
    },
    /// The communities have too few entries for the nonzeros inside, or leave too few for those outside.
    #[error("wanted {wanted} nonzeros {place} communities, found room for {room}")]
    Room {
        /// The nonzeros asked for.
        wanted: u32,
        /// `inside` or `between`.
        place: &'static str,
        /// The number of entries there.
        room: u64,
    },
    /// The distribution is so skewed that too many draws were duplicates.
    #[error(
        "wanted {wanted} distinct nonzeros, found {found} after {draws} draws: \
         the distribution is too skewed for so many"
    )]
    TooSkewed {
        /// The nonzeros asked for.
        wanted: u32,
        /// The distinct nonzeros that were drawn.
        found: u32,
        /// The number of draws.
        draws: u64,
    },
}
