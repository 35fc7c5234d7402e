//! A part's matrix, split by columns: those of its own rows of X, and those of its halo.
//!
//! `Y = A_own X_own` runs while the halo travels, and `Y += A_halo X_halo` after it. The price is that Y is read and
//! written once more.

use crate::csr::CsrMatrix;
use crate::spmm::{Reduction, SpmmElement, SpmmOptions};
use std::ops::Range;

/// A matrix is split only if at least one nonzero in so many is in own columns, and if the halo has at least one row
/// for so many rows of Y: a link has a tenth of a GPU's memory bandwidth, so this hides more than Y costs.
const LEAST_SHARE: usize = 4;

/// A part's matrix, split by the owners of the rows of X.
#[derive(Clone, Debug)]
#[allow(
    clippy::exhaustive_structs,
    reason = "a part owns a row of X, or it does not"
)]
pub struct ColumnSplit<E> {
    /// What can be multiplied while the halo travels.
    pub own: ColumnRange<E>,
    /// What is added to it then.
    pub halo: ColumnRange<E>,
}

/// The nonzeros of all rows in some columns.
#[derive(Clone, Debug)]
#[allow(
    clippy::exhaustive_structs,
    reason = "a matrix and where it is in the whole"
)]
pub struct ColumnRange<E> {
    /// The nonzeros. Column 0 is the first one of `columns`.
    pub a: CsrMatrix<E>,
    /// The columns in the whole matrix.
    pub columns: Range<usize>,
}

impl<E: SpmmElement> ColumnSplit<E> {
    /// Splits a part's matrix, if its product is a sum, any kernel may compute it, and it is likely to become faster.
    ///
    /// `own` are the columns of the rows of X that the part owns. The own columns begin at `first`, which is at most
    /// `own.start`, and the halo's at a multiple of `alignment`.
    pub fn if_it_pays(
        a: &CsrMatrix<E>,
        own: Range<usize>,
        first: usize,
        alignment: usize,
        options: SpmmOptions,
    ) -> Option<Self> {
        // A requested kernel may not add to Y, other reductions than sums cannot be added, and sums of 16 bits would be
        // rounded twice.
        let can = options.reduction == Reduction::Sum
            && options.tuning.kernel.is_none()
            && size_of::<E>() > 2;
        if !can || !pays(a, &own) {
            return None;
        }
        let is_own = |column: u32| own.contains(&(column as usize));
        let halo = halo_columns(a.cols(), &own, alignment);
        Some(Self {
            own: ColumnRange::of(a, first..own.end, is_own),
            halo: ColumnRange::of(a, halo, |column| !is_own(column)),
        })
    }
}

impl<E: SpmmElement> ColumnRange<E> {
    /// The nonzeros whose columns are wanted, which are all in a range.
    fn of(a: &CsrMatrix<E>, columns: Range<usize>, is_wanted: impl Fn(u32) -> bool) -> Self {
        let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in a.outer_iterator() {
            for (&column, &value) in row.indices().iter().zip(row.data()) {
                if is_wanted(column) {
                    col_idx.push(column - columns.start as u32);
                    values.push(value);
                }
            }
            row_ptr.push(col_idx.len() as u32);
        }
        let shape = (a.rows(), columns.len());
        Self {
            a: CsrMatrix::new(shape, row_ptr, col_idx, values),
            columns,
        }
    }
}

fn pays<E: SpmmElement>(a: &CsrMatrix<E>, own: &Range<usize>) -> bool {
    let is_own = |&&column: &&u32| own.contains(&(column as usize));
    let of_own = a.indices().iter().filter(is_own).count();
    let halo = a.cols() - own.len();
    of_own < a.nnz() && of_own * LEAST_SHARE >= a.nnz() && halo * LEAST_SHARE >= a.rows()
}

/// The range of columns in which all are that the part does not own. Most often it is before its own, or behind.
fn halo_columns(columns: usize, own: &Range<usize>, alignment: usize) -> Range<usize> {
    match (own.start, own.end == columns) {
        (0, _) => own.end - own.end % alignment..columns,
        (_, true) => 0..own.start,
        (_, false) => 0..columns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    #[test]
    fn a_split_pays_if_own_nonzeros_and_the_halo_are_many() {
        let uniform = generate::uniform::<f32>(64, 64, 640, 1).unwrap();
        assert!(pays(&uniform, &(0..32)));
        assert!(!pays(&uniform, &(0..8)), "few own nonzeros");
        assert!(!pays(&uniform, &(0..56)), "few rows of a halo");
        assert!(!pays(&uniform, &(0..64)), "no halo");
        let split = |options| ColumnSplit::if_it_pays(&uniform, 0..32, 0, 8, options).is_some();
        assert!(split(SpmmOptions::new()));
        assert!(!split(SpmmOptions::new().reduction(Reduction::Max)));
        let half = generate::uniform::<crate::f16>(64, 64, 640, 1).unwrap();
        assert!(ColumnSplit::if_it_pays(&half, 0..32, 0, 8, SpmmOptions::new()).is_none());
    }

    #[test]
    fn own_and_other_columns_make_the_matrix_again() {
        let a = generate::uniform::<f32>(50, 64, 640, 1).unwrap();
        for own in [0..20, 20..64, 13..45] {
            let first = own.start - own.start % 8;
            let split = ColumnSplit::if_it_pays(&a, own.clone(), first, 8, SpmmOptions::new());
            let ColumnSplit { own: of_own, halo } = split.unwrap();
            let mut found = ndarray::Array2::<f32>::zeros((50, 64));
            for part in [of_own, halo] {
                assert_eq!(part.columns.start % 8, 0);
                for (&value, (row, column)) in &part.a {
                    let column = column as usize + part.columns.start;
                    assert_eq!(found[(row as usize, column)], 0.0);
                    found[(row as usize, column)] = value;
                }
            }
            assert_eq!(found, a.to_dense(), "{own:?}");
        }
    }
}
