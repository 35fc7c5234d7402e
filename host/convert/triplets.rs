//! Matrices of triplets of row, column and value: coordinate format, COO.

use super::{ConvertError, check_extents, check_size};
use crate::csr::CsrMatrix;
use crate::scalar::Scalar;
use crate::triplets::{Triplet, by_rows};

/// What becomes of several entries at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Duplicates {
    /// Their sum, in the order of the list.
    Sum,
    /// They are an error.
    Refuse,
}

/// A `shape.0` x `shape.1` matrix of triplets of row, column and value, in any order. Zeros stay.
///
/// ```
/// use warprow::convert::{Duplicates, from_triplets};
///
/// # fn main() -> Result<(), warprow::Error> {
/// let triplets = [(1, 0, 1.0_f32), (0, 2, 2.0), (1, 0, 0.5)];
/// let a = from_triplets((2, 3), triplets, Duplicates::Sum)?;
/// assert_eq!(a.to_dense(), ndarray::array![[0.0, 0.0, 2.0], [1.5, 0.0, 0.0]]);
/// assert!(from_triplets((2, 3), triplets, Duplicates::Refuse).is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// An entry outside of the matrix; two at one place, if they are refused; 2^32 - 1 rows or more; 2^32 columns or
/// entries or more.
pub fn from_triplets<T: Scalar>(
    shape: (usize, usize),
    triplets: impl IntoIterator<Item = (usize, usize, T)>,
    duplicates: Duplicates,
) -> Result<CsrMatrix<T>, ConvertError> {
    check_extents(shape, true)?;
    // They fit, and entries are below them.
    let (rows, columns) = (shape.0 as u32, shape.1 as u32);
    let mut entries = Vec::new();
    for (number, (row, col, value)) in triplets.into_iter().enumerate() {
        if row >= shape.0 || col >= shape.1 {
            return Err(ConvertError::Outside {
                number,
                row,
                col,
                shape,
            });
        }
        let (row, column) = (row as u32, col as u32);
        entries.push(Triplet { row, column, value });
    }
    check_size("the number of entries", entries.len(), u32::MAX.into())?;
    let matrix = by_rows(rows, columns, &entries)?;
    if duplicates == Duplicates::Refuse && matrix.nnz() < entries.len() {
        return Err(first_duplicate(entries));
    }
    Ok(matrix)
}

/// The error for the first place of several entries, by rows.
fn first_duplicate<T: Scalar>(mut entries: Vec<Triplet<T>>) -> ConvertError {
    let place = |entry: &Triplet<T>| (entry.row, entry.column);
    entries.sort_unstable_by_key(place);
    let mut pairs = entries.windows(2);
    let pair = pairs.find(|pair| place(&pair[0]) == place(&pair[1]));
    let pair = pair.expect("the matrix has fewer nonzeros than there are entries");
    let (row, col) = (pair[0].row as usize, pair[0].column as usize);
    ConvertError::Duplicate { row, col }
}
