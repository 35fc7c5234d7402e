//! Conversions of sparse matrices from and to what other crates and programs have, checked.
//!
//! | from | function |
//! |---|---|
//! | an `sprs` matrix with indices of any type, such as `usize` | [`from_sprs`] |
//! | triplets of row, column and value (COO) | [`from_triplets`] |
//! | `nalgebra-sparse` (feature `nalgebra-sparse`) | `from_nalgebra`, and back with `to_nalgebra` |
//! | `faer` (feature `faer`) | `from_faer`, and back with `to_faer` |
//!
//! Memory of a device is adopted or copied by [`DeviceCsr::from_device`](crate::DeviceCsr::from_device) and
//! [`copy_from_device`](crate::DeviceCsr::copy_from_device).

mod error;
#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "nalgebra-sparse")]
mod nalgebra;
mod triplets;

#[cfg(feature = "faer")]
pub use self::faer::{from_faer, to_faer};
#[cfg(feature = "nalgebra-sparse")]
pub use self::nalgebra::{from_nalgebra, to_nalgebra};
pub use error::ConvertError;
pub use triplets::{Duplicates, from_triplets};

use crate::csr::CsrMatrix;
use sprs::{CsMatI, CsMatViewI, SpIndex};

/// Maximum number of lines: in `sprs`, the length of the row pointers must fit u32.
const MAX_LINES: u64 = u32::MAX as u64 - 1;

/// A matrix with u32 indices, of one with indices of any type. It stays stored by rows or by columns, as it is.
///
/// ```
/// use warprow::convert::from_sprs;
///
/// # fn main() -> Result<(), warprow::Error> {
/// let a = sprs::CsMat::new((2, 3), vec![0, 1, 2], vec![2, 0], vec![1.5_f32, 2.5]); // `usize`
/// let a = from_sprs(a.view())?;
/// assert_eq!((a.indices(), a.data()), (&[2_u32, 0][..], &[1.5, 2.5][..]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// 2^32 rows, columns or nonzeros or more (rows also one fewer; columns of a matrix stored by columns likewise); lists
/// that are no matrix.
pub fn from_sprs<T: Clone, I: SpIndex, P: SpIndex>(
    a: CsMatViewI<'_, T, I, P>,
) -> Result<CsrMatrix<T>, ConvertError> {
    let indptr = a.indptr();
    let first = indptr
        .raw_storage()
        .first()
        .map_or(0, |first| first.index());
    // Those of a view of some lines do not start at 0.
    let pointers = (indptr.raw_storage().iter()).map(|pointer| pointer.index().wrapping_sub(first));
    let indices = a.indices().iter().map(|index| index.index());
    let shape = (a.rows(), a.cols());
    assemble(shape, a.is_csr(), pointers, indices, a.data().to_vec())
}

/// A matrix of lists of any index type, checked.
fn assemble<T>(
    shape: (usize, usize),
    is_by_rows: bool,
    pointers: impl ExactSizeIterator<Item = usize>,
    indices: impl ExactSizeIterator<Item = usize>,
    values: Vec<T>,
) -> Result<CsrMatrix<T>, ConvertError> {
    check_extents(shape, is_by_rows)?;
    let pointers = narrowed("a row pointer", pointers)?;
    let indices = narrowed("an index", indices)?;
    let matrix = if is_by_rows {
        CsMatI::try_new(shape, pointers, indices, values)
    } else {
        CsMatI::try_new_csc(shape, pointers, indices, values)
    };
    matrix.map_err(|(_, _, _, reason)| ConvertError::Structure {
        reason: reason.to_string(),
    })
}

/// Checks that numbers of rows and columns fit.
fn check_extents(shape: (usize, usize), is_by_rows: bool) -> Result<(), ConvertError> {
    let all = u64::from(u32::MAX);
    let [most_rows, most_cols] = if is_by_rows {
        [MAX_LINES, all]
    } else {
        [all, MAX_LINES]
    };
    check_size("the number of rows", shape.0, most_rows)?;
    check_size("the number of columns", shape.1, most_cols)
}

fn check_size(what: &'static str, found: usize, most: u64) -> Result<(), ConvertError> {
    if found as u64 <= most {
        return Ok(());
    }
    Err(ConvertError::TooLarge {
        what,
        found: found as u64,
        most,
    })
}

/// The numbers with 32 bits.
fn narrowed(
    what: &'static str,
    numbers: impl ExactSizeIterator<Item = usize>,
) -> Result<Vec<u32>, ConvertError> {
    let narrow = |number: usize| {
        u32::try_from(number).map_err(|_| ConvertError::TooLarge {
            what,
            found: number as u64,
            most: u32::MAX.into(),
        })
    };
    numbers.map(narrow).collect()
}

#[cfg(test)]
mod tests;
