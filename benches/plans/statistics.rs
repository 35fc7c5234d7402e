//! Statistics of a matrix in an order of its rows, from which a cost model predicts times.

use serde::Serialize;
use sprs::CsMatI;
use warprow::spmm::{SpmmElement, SpmmError};
use warprow::{DeviceCsr, RowOrder, Spmm, SpmmOptions, SpmmTuning};

/// Bins of a histogram: `2^b` to `2^(b+1) - 1` nonzeros.
const BINS: usize = 32;

/// Rows of a window.
const WINDOWS: [usize; 6] = [2, 8, 64, 512, 4096, 32_768];

/// Maximum number of nonzeros in the windows of one size.
const MAX_COUNTED: usize = 8 << 20;

/// Maximum number of windows of one size.
const MAX_WINDOWS: usize = 512;

/// Statistics of a matrix.
#[derive(Clone, Debug, Serialize)]
pub struct Statistics {
    /// The number of rows without nonzeros, and the nonzeros of the longest row.
    empty_rows: usize,
    longest_row: usize,
    /// Rows, and their nonzeros, by length.
    rows: Vec<(usize, usize)>,
    /// Columns, and their nonzeros, by length.
    columns: Vec<(usize, usize)>,
    /// For windows of consecutive rows: their rows, their nonzeros, their distinct columns.
    windows: Vec<(usize, usize, usize)>,
}

impl Statistics {
    /// Those of `a` with its rows in `order`.
    pub fn of(a: &CsMatI<f32, u32, u32>, order: Option<&[u32]>) -> Self {
        let row_ptr = a.indptr();
        let row_ptr = row_ptr.raw_storage();
        let lengths = || row_ptr.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
        let mut of_column = vec![0_usize; a.cols()];
        for &column in a.indices() {
            of_column[column as usize] += 1;
        }
        Self {
            empty_rows: lengths().filter(|&length| length == 0).count(),
            longest_row: lengths().max().unwrap_or(0),
            rows: histogram(lengths()),
            columns: histogram(of_column.into_iter()),
            windows: WINDOWS
                .iter()
                .map(|&rows| windows(a, rows, order))
                .collect(),
        }
    }
}

fn histogram(lengths: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut bins = vec![(0, 0); BINS];
    for length in lengths.filter(|&length| length > 0) {
        let bin = &mut bins[length.ilog2() as usize];
        bin.0 += 1;
        bin.1 += length;
    }
    bins
}

/// The rows of a window, and the means of its nonzeros and distinct columns times the number of windows.
fn windows(a: &CsMatI<f32, u32, u32>, rows: usize, order: Option<&[u32]>) -> (usize, usize, usize) {
    let row_ptr = a.indptr();
    let row_ptr = row_ptr.raw_storage();
    let mean = (a.nnz() / a.rows().max(1)).max(1) * rows;
    let count = (MAX_COUNTED / mean)
        .clamp(2, MAX_WINDOWS)
        .min(a.rows() / rows);
    let of_window = |window: usize| {
        let first = window * (a.rows() - rows) / count.max(1);
        let mut columns: Vec<u32> = (first..first + rows)
            .flat_map(|row| {
                let row = order.map_or(row, |order| order[row] as usize);
                a.indices()[row_ptr[row] as usize..row_ptr[row + 1] as usize]
                    .iter()
                    .copied()
            })
            .collect();
        let nonzeros = columns.len();
        columns.sort_unstable();
        columns.dedup();
        (nonzeros, columns.len())
    };
    let add = |one: (usize, usize), other: (usize, usize)| (one.0 + other.0, one.1 + other.1);
    let (nonzeros, distinct) = parallel::reduce(count, || (0, 0), of_window, add);
    (rows, nonzeros, distinct)
}

/// The number of each row in an order of a plan.
pub fn row_permutation<T: SpmmElement>(
    a: &DeviceCsr<T::Sum>,
    order: RowOrder,
) -> Result<Option<Vec<u32>>, SpmmError> {
    let options = SpmmOptions::new().tuning(SpmmTuning::new().order(order));
    Spmm::<T>::plan_device(a, options)?.row_permutation()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sprs::CsMatI;

    #[test]
    fn equal_rows_have_the_columns_of_one() {
        let row_ptr = (0..=64).map(|row| 3 * row).collect();
        let a = CsMatI::new((64, 9), row_ptr, [1, 4, 7].repeat(64), vec![1.0; 192]);
        let found = Statistics::of(&a, None);
        assert_eq!(found.windows[2], (64, 192, 3));
        assert_eq!((found.rows[1], found.columns[6]), ((64, 192), (3, 192)));
        assert_eq!((found.longest_row, found.empty_rows), (3, 0));
    }
}
