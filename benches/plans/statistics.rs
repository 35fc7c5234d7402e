//! Statistics of a matrix, from which a cost model predicts times.

use serde::Serialize;
use sprs::CsMatI;
use warprow::spmm::SpmmError;
use warprow::{DeviceCsr, RowOrder, Spmm, SpmmOptions, SpmmTuning};

/// Bins of a histogram: `2^b` to `2^(b+1) - 1` nonzeros.
const BINS: usize = 32;

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
}

impl Statistics {
    /// Those of `a`.
    pub fn of(a: &CsMatI<f32, u32, u32>) -> Self {
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

/// How far rows that are near each other share columns, as the plan measures it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Localities {
    /// In the caller's order.
    given: Option<[f64; 3]>,
    /// In clusters.
    clustered: Option<[f64; 3]>,
}

impl Localities {
    /// Those of a matrix; none on an emulator of no certain GPU.
    pub fn of(a: &DeviceCsr<f32>) -> Result<Self, SpmmError> {
        let of_order = |order| -> Result<_, SpmmError> {
            let options = SpmmOptions::new().tuning(SpmmTuning::new().order(order));
            Ok(Spmm::<f32>::plan_device(a, options)?.localities())
        };
        Ok(Self {
            given: of_order(RowOrder::Given)?,
            clustered: of_order(RowOrder::Clustered)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sprs::CsMatI;

    #[test]
    fn rows_and_columns_are_counted_by_their_lengths() {
        let row_ptr = (0..=64).map(|row| 3 * row).collect();
        let a = CsMatI::new((64, 9), row_ptr, [1, 4, 7].repeat(64), vec![1.0; 192]);
        let found = Statistics::of(&a);
        assert_eq!((found.rows[1], found.columns[6]), ((64, 192), (3, 192)));
        assert_eq!((found.longest_row, found.empty_rows), (3, 0));
    }
}
