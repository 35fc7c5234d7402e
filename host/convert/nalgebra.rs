//! Matrices of the crate `nalgebra-sparse`.

use super::{ConvertError, assemble};
use crate::csr::CsrMatrix;
use sprs::CsMatViewI;

/// A matrix of `nalgebra-sparse` with u32 indices.
///
/// ```
/// use warprow::convert::{from_nalgebra, to_nalgebra};
///
/// # fn main() -> Result<(), warprow::Error> {
/// let (rows, cols) = (vec![0, 1, 2], vec![2, 0]);
/// let theirs = nalgebra_sparse::CsrMatrix::try_from_csr_data(2, 3, rows, cols, vec![1.5_f32, 2.5]).unwrap();
/// let ours = from_nalgebra(&theirs)?;
/// assert_eq!(to_nalgebra(ours.view())?, theirs);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// 2^32 - 1 rows or more; 2^32 columns or nonzeros or more.
pub fn from_nalgebra<T: Clone>(
    a: &nalgebra_sparse::CsrMatrix<T>,
) -> Result<CsrMatrix<T>, ConvertError> {
    let (pointers, indices, values) = a.csr_data();
    let (pointers, indices) = (pointers.iter().copied(), indices.iter().copied());
    assemble(
        (a.nrows(), a.ncols()),
        true,
        pointers,
        indices,
        values.to_vec(),
    )
}

/// A matrix of `nalgebra-sparse`. One that is stored by columns is converted to rows.
///
/// # Errors
///
/// Lists that are no matrix.
pub fn to_nalgebra<T: Clone + Default>(
    a: CsMatViewI<'_, T, u32, u32>,
) -> Result<nalgebra_sparse::CsrMatrix<T>, ConvertError> {
    let a = a.to_csr();
    let (rows, cols) = (a.rows(), a.cols());
    let (pointers, indices, values) = a.into_raw_storage();
    let wide = |numbers: Vec<u32>| numbers.into_iter().map(|number| number as usize).collect();
    nalgebra_sparse::CsrMatrix::try_from_csr_data(rows, cols, wide(pointers), wide(indices), values)
        .map_err(|reason| ConvertError::Structure {
            reason: reason.to_string(),
        })
}
