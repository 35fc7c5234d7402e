//! The operands of the cases: some hundred rows, some of them empty, and one very long row.

use sprs::CsMatI;
use warprow::{CsrMatrix, Scalar};

/// Rows of a matrix from [`skewed`].
pub const ROWS: usize = 300;

/// Columns of a matrix from [`skewed`].
pub const COLS: usize = 500;

/// [`ROWS`] rows of up to 12 nonzeros, and one of 500, which has all columns.
pub fn skewed() -> CsrMatrix<f32> {
    let mut rows: Vec<Vec<u32>> = (0..ROWS as u32)
        .map(|row| {
            (0..row * 7 % 13)
                .map(|k| (row * 3 + k * 38) % COLS as u32)
                .collect()
        })
        .collect();
    rows[11] = (0..COLS as u32).collect();
    whole(rows, COLS)
}

/// A matrix of whole numbers from -3 to 3 with these columns in its rows.
pub fn whole<T: Scalar>(rows: Vec<Vec<u32>>, cols: usize) -> CsrMatrix<T> {
    let (mut row_ptr, mut columns) = (vec![0], Vec::new());
    for mut row in rows {
        row.sort_unstable();
        row.dedup();
        columns.extend(row);
        row_ptr.push(columns.len() as u32);
    }
    let values = (0..columns.len()).map(|k| T::from_f64((k % 7) as f64 - 3.0));
    let shape = (row_ptr.len() - 1, cols);
    CsMatI::new(shape, row_ptr, columns, values.collect())
}
