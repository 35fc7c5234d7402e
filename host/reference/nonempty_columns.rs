//! Matrices without their empty columns.

use sprs::{CsMatI, CsMatViewI};

/// The matrix without its empty columns, and the column that each of the remaining ones was. `None` if it has no more
/// columns than nonzeros: whatever takes memory for each column then takes little more than the matrix.
pub(super) fn without_empty_columns<T: Clone>(
    b: &CsMatViewI<'_, T, u32, u32>,
) -> Option<(CsMatI<T, u32, u32>, Vec<u32>)> {
    if b.cols() <= b.nnz() {
        return None;
    }
    let mut columns = b.indices().to_vec();
    parallel::sort_u32(&mut columns);
    columns.dedup();
    let number = |column: u32| columns.partition_point(|&other| other < column) as u32;
    let mut numbers = vec![0; b.nnz()];
    let columns_of_b = b.indices();
    parallel::fill(&mut numbers, |place| number(columns_of_b[place]));
    let row_ptr = b.proper_indptr().into_owned();
    let narrow = CsMatI::new(
        (b.rows(), columns.len()),
        row_ptr,
        numbers,
        b.data().to_vec(),
    );
    Some((narrow, columns))
}
