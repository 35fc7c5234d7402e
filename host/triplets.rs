//! Triplets in any order to a matrix in CSR.

use std::collections::TryReserveError;

use sprs::CsMatI;

use crate::scalar::Scalar;

/// One entry, with row and column counted from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Triplet<T> {
    pub(crate) row: u32,
    pub(crate) column: u32,
    pub(crate) value: T,
}

/// Maximum number of rows: in `sprs`, the row pointer's length must fit u32.
pub(crate) const MAX_ROWS: u32 = u32::MAX - 1;

/// Maximum number of columns.
pub(crate) const MAX_COLUMNS: u32 = u32::MAX;

/// A matrix with more rows than a reader's limit needs one entry for every 16 rows.
const ROWS_PER_ENTRY: u64 = 16;

/// Maximum number of rows of a matrix with so many stored entries, where `max_sparse_rows` are allowed for any number.
pub(crate) fn max_rows(entries: u64, max_sparse_rows: u32) -> u64 {
    entries
        .saturating_mul(ROWS_PER_ENTRY)
        .max(max_sparse_rows.into())
}

/// The matrix of these entries. Entries with the same row and column are summed in the order given.
///
/// # Panics
///
/// If an entry lies outside the matrix, or there are more than `u32::MAX`.
pub(crate) fn by_rows<T: Scalar>(
    rows: u32,
    columns: u32,
    triplets: &[Triplet<T>],
) -> Result<CsMatI<T, u32, u32>, TryReserveError> {
    let rows = rows as usize;
    let mut row_pointer = row_pointer(rows, triplets)?;
    let mut indices = filled(triplets.len(), 0)?;
    let mut data = filled(triplets.len(), T::ONE)?;
    // Filling the rows moves each row's pointer from its start to its end, which is the next row's start.
    for triplet in triplets {
        let next = &mut row_pointer[triplet.row as usize];
        indices[*next as usize] = triplet.column;
        data[*next as usize] = triplet.value;
        *next += 1;
    }
    let nonzeros = sort_and_sum(&mut row_pointer[..rows], &mut indices, &mut data);
    row_pointer.rotate_right(1);
    row_pointer[0] = 0;
    indices.truncate(nonzeros);
    data.truncate(nonzeros);
    Ok(CsMatI::new(
        (rows, columns as usize),
        row_pointer,
        indices,
        data,
    ))
}

/// Where each row starts, and one element more.
fn row_pointer<T>(rows: usize, triplets: &[Triplet<T>]) -> Result<Vec<u32>, TryReserveError> {
    let mut pointer = filled(rows + 1, 0u32)?;
    for triplet in triplets {
        pointer[triplet.row as usize] += 1;
    }
    let mut start = 0;
    for entry in &mut pointer {
        start += std::mem::replace(entry, start);
    }
    Ok(pointer)
}

/// Sorts every row by column, sums duplicates, closes the gaps that they leave, and returns the number of nonzeros.
/// `ends` holds the end of each row, before and after.
fn sort_and_sum<T: Scalar>(ends: &mut [u32], indices: &mut [u32], data: &mut [T]) -> usize {
    let mut row = Vec::new();
    let (mut start, mut written) = (0, 0);
    for end in ends {
        let range = start..*end as usize;
        start = range.end;
        if !indices[range.clone()].is_sorted() {
            row.clear();
            row.extend(range.clone().map(|at| (indices[at], data[at])));
            row.sort_by_key(|&(column, _)| column);
            for (at, &(column, value)) in range.clone().zip(&row) {
                (indices[at], data[at]) = (column, value);
            }
        }
        let first = written;
        for at in range {
            if written > first && indices[written - 1] == indices[at] {
                data[written - 1] = data[written - 1] + data[at];
            } else {
                (indices[written], data[written]) = (indices[at], data[at]);
                written += 1;
            }
        }
        *end = written as u32;
    }
    written
}

/// A vector of equal elements, or an error if there is no memory for it.
pub(crate) fn filled<T: Clone>(length: usize, value: T) -> Result<Vec<T>, TryReserveError> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(length)?;
    vector.resize(length, value);
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(rows: u32, columns: u32, entries: &[(u32, u32, f32)]) -> CsMatI<f32, u32, u32> {
        let triplets: Vec<_> = (entries.iter())
            .map(|&(row, column, value)| Triplet { row, column, value })
            .collect();
        by_rows(rows, columns, &triplets).unwrap()
    }

    #[test]
    fn entries_in_any_order_are_sorted_by_row_and_column() {
        let a = compressed(
            4,
            3,
            &[
                (3, 2, 1.0),
                (0, 1, 2.0),
                (3, 0, 3.0),
                (0, 0, 4.0),
                (2, 1, 5.0),
                (3, 1, 6.0),
            ],
        );
        let (row_pointer, indices, data) = a.into_raw_storage();
        assert_eq!(row_pointer, [0, 2, 2, 3, 6]);
        assert_eq!(indices, [0, 1, 1, 0, 1, 2]);
        assert_eq!(data, [4.0, 2.0, 5.0, 3.0, 6.0, 1.0]);
    }

    #[test]
    fn duplicates_are_summed_in_their_order_within_their_row_alone() {
        // 1e8 + 1 is 1e8 in f32: only the order given sums to 1.
        let a = compressed(
            3,
            2,
            &[
                (1, 1, 1e8),
                (0, 1, 7.0),
                (1, 1, -1e8),
                (1, 0, 2.0),
                (1, 1, 1.0),
                (2, 1, 8.0),
            ],
        );
        let (row_pointer, indices, data) = a.into_raw_storage();
        assert_eq!(row_pointer, [0, 1, 3, 4]);
        assert_eq!(indices, [1, 0, 1, 1]);
        assert_eq!(data, [7.0, 2.0, 1.0, 8.0]);
    }

    #[test]
    fn a_matrix_may_be_empty() {
        for (rows, columns) in [(0, 0), (0, 5), (5, 0), (3, 4)] {
            let a = compressed(rows, columns, &[]);
            assert_eq!(a.shape(), (rows as usize, columns as usize));
            assert_eq!(a.nnz(), 0);
        }
    }
}
