//! Matrices of the crate `faer`.

use super::{ConvertError, check_extents, check_size, narrowed};
use crate::csr::CsrMatrix;
use faer::Index;
use faer::sparse::{SparseRowMat, SparseRowMatRef, SymbolicSparseRowMat};
use sprs::{CsMatI, CsMatViewI};

/// A matrix of `faer` with u32 indices. Its rows may have unused places, and columns in any order.
///
/// ```
/// use warprow::convert::{from_faer, to_faer};
///
/// # fn main() -> Result<(), warprow::Error> {
/// let ours = sprs::CsMatI::<f32, u32, u32>::new((2, 3), vec![0, 1, 2], vec![2, 0], vec![1.5, 2.5]);
/// let theirs = to_faer(ours.view())?;
/// assert_eq!(from_faer(theirs.as_ref())?, ours);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// 2^32 - 1 rows or more; 2^32 columns or nonzeros or more; two entries at one place.
pub fn from_faer<I: Index, T: Clone>(
    a: SparseRowMatRef<'_, I, T>,
) -> Result<CsrMatrix<T>, ConvertError> {
    let structure = a.symbolic();
    let shape = (structure.nrows(), structure.ncols());
    check_extents(shape, true)?;
    let mut row_ptr = vec![0];
    let (mut col_idx, mut values) = (Vec::new(), Vec::new());
    for row in 0..shape.0 {
        let places = structure.row_range(row);
        let columns = &structure.col_idx()[places.clone()];
        col_idx.extend(narrowed("a column", columns.iter().map(|col| col.zx()))?);
        values.extend_from_slice(&a.val()[places]);
        check_size("the number of nonzeros", col_idx.len(), u32::MAX.into())?;
        row_ptr.push(col_idx.len() as u32);
    }
    let matrix = CsMatI::new_from_unsorted(shape, row_ptr, col_idx, values);
    matrix.map_err(|(_, _, _, reason)| ConvertError::Structure {
        reason: reason.to_string(),
    })
}

/// A matrix of `faer`. One that is stored by columns is converted to rows.
///
/// # Errors
///
/// Lists that are no matrix.
pub fn to_faer<T: Clone + Default>(
    a: CsMatViewI<'_, T, u32, u32>,
) -> Result<SparseRowMat<u32, T>, ConvertError> {
    // `faer` panics where lists are no matrix.
    crate::csr::check(&a).map_err(|reason| ConvertError::Structure {
        reason: reason.to_string(),
    })?;
    let a = a.to_csr();
    let (rows, cols) = (a.rows(), a.cols());
    let (row_ptr, col_idx, values) = a.into_raw_storage();
    let structure = SymbolicSparseRowMat::new_checked(rows, cols, row_ptr, None, col_idx);
    Ok(SparseRowMat::new(structure, values))
}
