//! Matrices of triplets of row, column and value: coordinate format, COO.

use super::{ConvertError, check_extents, check_size};
use crate::csr::CsrMatrix;
use crate::scalar::Scalar;
use rayon::slice::ParallelSliceMut;
use sprs::CsMatI;

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
        // They are below the shape, which fits.
        entries.push((row as u32, col as u32, value));
    }
    // It is stable: entries at one place stay in their order.
    entries.par_sort_by_key(|&(row, col, _)| (row, col));
    let mut row_ptr = vec![0];
    let (mut col_idx, mut values) = (Vec::new(), Vec::<T>::new());
    let mut place = None;
    for (row, col, value) in entries {
        if place == Some((row, col)) {
            if duplicates == Duplicates::Refuse {
                let (row, col) = (row as usize, col as usize);
                return Err(ConvertError::Duplicate { row, col });
            }
            if let Some(sum) = values.last_mut() {
                *sum = *sum + value;
            }
            continue;
        }
        place = Some((row, col));
        // Rows before this one end here. Their number is checked below.
        row_ptr.resize(row as usize + 1, col_idx.len() as u32);
        col_idx.push(col);
        values.push(value);
    }
    check_size("the number of nonzeros", col_idx.len(), u32::MAX.into())?;
    row_ptr.resize(shape.0 + 1, col_idx.len() as u32);
    Ok(CsMatI::new(shape, row_ptr, col_idx, values))
}
