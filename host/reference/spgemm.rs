//! The product of two sparse matrices in f64, and the verification of one: the structure must be equal, and the values
//! within an error bound.

use super::check_stored_by_rows;
use super::nonempty_columns::without_empty_columns;
use super::operation::Operation;
use super::verification::{Verification, judge};
use crate::scalar::Scalar;
use sprs::{CsMatI, CsMatViewI, CsVecViewI};
use std::fmt;

/// The product `A B` (m x n) of two sparse matrices in CSR (m x k, k x n). Sums are f64. An entry is stored wherever
/// there is a product `A[i, k] * B[k, j]` of two nonzeros, even if the sum is zero.
///
/// # Panics
///
/// If a matrix is not stored by rows, if `a` has not as many columns as `b` has rows, or if the product has 2^32
/// entries or more.
#[must_use]
pub fn spgemm<T: Scalar>(
    a: CsMatViewI<'_, T, u32, u32>,
    b: CsMatViewI<'_, T, u32, u32>,
) -> CsMatI<f64, u32, u32> {
    check_operands(&a, &b);
    if let Some((narrow, columns)) = without_empty_columns(&b) {
        let (row_ptr, numbers, data) = spgemm(a, narrow.view()).into_raw_storage();
        let indices = numbers.into_iter().map(|number| columns[number as usize]);
        return CsMatI::new((a.rows(), b.cols()), row_ptr, indices.collect(), data);
    }
    // Each chunk has an accumulator of all columns, so there are few.
    let size = parallel::large_chunk_size(a.rows());
    let chunks = parallel::map_chunks(a.rows(), size, |rows| {
        let mut accumulator = Accumulator::new(b.cols());
        let of_row = |row| {
            accumulator.add_row(&a, &b, row);
            let columns = accumulator.sorted_columns();
            let sums = columns.iter().map(|&c| accumulator.sums[c as usize].sum);
            let sums: Vec<f64> = sums.collect();
            accumulator.clear();
            (columns, sums)
        };
        rows.map(of_row).collect::<Vec<(Vec<u32>, Vec<f64>)>>()
    });
    let mut row_ptr = vec![0_u32];
    let mut entries = 0_usize;
    for (columns, _) in chunks.iter().flatten() {
        entries += columns.len();
        let end = u32::try_from(entries);
        row_ptr.push(end.expect("the product has fewer than 2^32 entries"));
    }
    let (mut indices, mut data) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
    for (columns, sums) in chunks.into_iter().flatten() {
        indices.extend(columns);
        data.extend(sums);
    }
    CsMatI::new((a.rows(), b.cols()), row_ptr, indices, data)
}

/// What [`verify_spgemm`] found.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct SpgemmVerification {
    /// The first row whose columns are not those of the product; `None` if all are right.
    pub wrong_row: Option<WrongRow>,
    /// The verification of the values, in rows whose columns are right.
    pub values: Verification,
}

/// A row whose columns are not those of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongRow {
    /// The row, counted from 0.
    pub row: usize,
    /// The number of entries of the row.
    pub got: usize,
    /// The number of entries that the product has there.
    pub wanted: usize,
    /// The index of the first entry whose column differs.
    pub place: usize,
}

impl SpgemmVerification {
    /// Whether the structure is that of the product and every value is within its bound.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.wrong_row.is_none() && self.values.ok()
    }

    fn merge(self, other: Self) -> Self {
        let wrong_row = match (self.wrong_row, other.wrong_row) {
            (Some(a), Some(b)) => Some(if a.row < b.row { a } else { b }),
            (a, b) => a.or(b),
        };
        Self {
            wrong_row,
            values: self.values.merge(other.values),
        }
    }
}

impl fmt::Display for SpgemmVerification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(WrongRow {
            row,
            got,
            wanted,
            place,
        }) = self.wrong_row
        {
            write!(
                f,
                "wrong structure: row {row} has {got} entries, wanted are {wanted}, and from entry {place} on \
                 its columns differ; \
                 values: "
            )?;
        }
        self.values.fmt(f)
    }
}

/// Compares `c`, computed in any order of summation, with the product `A B`.
///
/// The columns must be those of [`spgemm`], including entries of value zero. Every value must be within the bound of
/// [`verify_spmm`](super::verify_spmm), where n is the number of products in the entry.
///
/// # Panics
///
/// If a matrix is not stored by rows or the shapes do not fit: `a` m x k, `b` k x n, `c` m x n.
pub fn verify_spgemm<T: Scalar>(
    a: CsMatViewI<'_, T, u32, u32>,
    b: CsMatViewI<'_, T, u32, u32>,
    c: CsMatViewI<'_, T, u32, u32>,
) -> SpgemmVerification {
    check_operands(&a, &b);
    check_stored_by_rows(&c);
    assert_eq!(
        (c.rows(), c.cols()),
        (a.rows(), b.cols()),
        "the product of a {} x {} matrix and a {} x {} one cannot be {} x {}",
        a.rows(),
        a.cols(),
        b.rows(),
        b.cols(),
        c.rows(),
        c.cols()
    );
    let none = || SpgemmVerification {
        wrong_row: None,
        values: Verification::EMPTY,
    };
    let narrow = without_empty_columns(&b);
    let (b, columns) = match &narrow {
        Some((narrow, columns)) => (narrow.view(), Some(&columns[..])),
        None => (b, None),
    };
    // Each chunk has an accumulator of all columns, so there are few.
    let size = parallel::large_chunk_size(a.rows());
    let chunks = parallel::map_chunks(a.rows(), size, |rows| {
        let mut accumulator = Accumulator::new(b.cols());
        let of_row = |row| {
            accumulator.add_row(&a, &b, row);
            let found = accumulator.verify(row, columns, &c);
            accumulator.clear();
            found
        };
        rows.map(of_row).fold(none(), SpgemmVerification::merge)
    });
    chunks.into_iter().fold(none(), SpgemmVerification::merge)
}

fn check_operands<T>(a: &CsMatViewI<'_, T, u32, u32>, b: &CsMatViewI<'_, T, u32, u32>) {
    check_stored_by_rows(a);
    check_stored_by_rows(b);
    assert_eq!(
        a.cols(),
        b.rows(),
        "a {} x {} matrix cannot multiply a {} x {} one",
        a.rows(),
        a.cols(),
        b.rows(),
        b.cols()
    );
}

fn row_of<'a, T>(a: &'a CsMatViewI<'_, T, u32, u32>, row: usize) -> CsVecViewI<'a, T, u32> {
    a.outer_view(row).expect("the row is one of the matrix")
}

/// The sums of one row, one for each column.
struct Accumulator {
    sums: Vec<EntrySum>,
    columns: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct EntrySum {
    sum: f64,
    magnitude: f64,
    terms: u32,
}

impl Accumulator {
    fn new(cols: usize) -> Self {
        Self {
            sums: vec![EntrySum::default(); cols],
            columns: Vec::new(),
        }
    }

    fn add_row<T: Scalar>(
        &mut self,
        a: &CsMatViewI<'_, T, u32, u32>,
        b: &CsMatViewI<'_, T, u32, u32>,
        row: usize,
    ) {
        for (k, &a_value) in row_of(a, row).iter() {
            for (column, &b_value) in row_of(b, k).iter() {
                let product = a_value.to_f64() * b_value.to_f64();
                let sum = &mut self.sums[column];
                if sum.terms == 0 {
                    self.columns.push(column as u32);
                }
                sum.sum += product;
                sum.magnitude += product.abs();
                sum.terms += 1;
            }
        }
    }

    fn sorted_columns(&mut self) -> Vec<u32> {
        let mut columns = self.columns.clone();
        columns.sort_unstable();
        columns
    }

    /// Verifies a row. `columns` has the column of each number that stands for one in the sums, if they are not the
    /// same.
    fn verify<T: Scalar>(
        &mut self,
        row: usize,
        columns: Option<&[u32]>,
        c: &CsMatViewI<'_, T, u32, u32>,
    ) -> SpgemmVerification {
        let numbers = self.sorted_columns();
        let column = |&number: &u32| columns.map_or(number, |columns| columns[number as usize]);
        let wanted: Vec<u32> = numbers.iter().map(column).collect();
        let got = row_of(c, row);
        if got.indices() != wanted {
            let pairs = got.indices().iter().zip(&wanted);
            let equal = pairs.take_while(|(got, wanted)| got == wanted).count();
            return SpgemmVerification {
                wrong_row: Some(WrongRow {
                    row,
                    got: got.nnz(),
                    wanted: wanted.len(),
                    place: equal,
                }),
                values: Verification::EMPTY,
            };
        }
        let values = (got.iter().zip(&numbers))
            .map(|((column, value), &number)| {
                let sum = self.sums[number as usize];
                let terms = sum.terms as usize;
                // The sum of magnitudes may overflow even if the sum does not.
                let magnitude = sum.magnitude.min(f64::MAX);
                let bound = Operation::<T>::default().bound(terms, magnitude);
                judge::<T>(row, column, value.to_f64(), sum.sum, magnitude, bound)
            })
            .fold(Verification::EMPTY, Verification::merge);
        SpgemmVerification {
            wrong_row: None,
            values,
        }
    }

    fn clear(&mut self) {
        for column in self.columns.drain(..) {
            self.sums[column as usize] = EntrySum::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Matrix = CsMatI<f32, u32, u32>;

    /// `[1 2 .; . . 3]` and `[1 -1; -.5 .5; . 4]`, whose product is `[0 0; . 12]`.
    fn operands() -> (Matrix, Matrix) {
        (
            CsMatI::new((2, 3), vec![0, 2, 3], vec![0, 1, 2], vec![1.0, 2.0, 3.0]),
            CsMatI::new(
                (3, 2),
                vec![0, 2, 4, 5],
                vec![0, 1, 0, 1, 1],
                vec![1.0, -1.0, -0.5, 0.5, 4.0],
            ),
        )
    }

    fn product(values: [f32; 3]) -> Matrix {
        CsMatI::new((2, 2), vec![0, 2, 3], vec![0, 1, 1], values.to_vec())
    }

    #[test]
    fn sums_that_cancel_are_entries() {
        let (a, b) = operands();
        let c = spgemm(a.view(), b.view());
        let wanted = CsMatI::new((2, 2), vec![0, 2, 3], vec![0, 1, 1], vec![0.0, 0.0, 12.0]);
        assert_eq!(c, wanted);
        assert!(verify_spgemm(a.view(), b.view(), product([0.0, 0.0, 12.0]).view()).ok());
    }

    #[test]
    fn a_wrong_value_is_named() {
        let (a, b) = operands();
        let found = verify_spgemm(a.view(), b.view(), product([0.0, 1e-3, 12.0]).view());
        assert!(!found.ok());
        let worst = found.values.worst.unwrap();
        assert_eq!((worst.row, worst.col, found.values.failures), (0, 1, 1));
        assert!(!verify_spgemm(a.view(), b.view(), product([0.0, 0.0, f32::NAN]).view()).ok());
    }

    #[test]
    fn a_missing_entry_is_named_even_if_it_is_zero() {
        let (a, b) = operands();
        let c = CsMatI::new((2, 2), vec![0, 1, 2], vec![0, 1], vec![0.0, 12.0]);
        let found = verify_spgemm(a.view(), b.view(), c.view());
        assert!(!found.ok());
        let wrong = found.wrong_row.unwrap();
        assert_eq!(
            (wrong.row, wrong.got, wrong.wanted, wrong.place),
            (0, 1, 2, 1)
        );
        assert!(
            found.to_string().starts_with("wrong structure: row 0"),
            "{found}"
        );
    }

    #[test]
    fn a_product_of_nearly_2_pow_32_columns_takes_memory_for_its_nonzeros_alone() {
        let cols = u32::MAX as usize;
        let one = CsMatI::new((1, 1), vec![0, 1], vec![0], vec![1.0_f32]);
        let last = CsMatI::new((1, cols), vec![0, 1], vec![u32::MAX - 1], vec![3.0_f32]);
        let c = spgemm(one.view(), last.view());
        assert_eq!((c.rows(), c.cols()), (1, cols));
        assert_eq!((c.indices(), c.data()), (&[u32::MAX - 1][..], &[3.0][..]));
        assert!(verify_spgemm(one.view(), last.view(), last.view()).ok());

        let (mut wrong_value, mut wrong_column) = (last.clone(), last.clone());
        wrong_value.data_mut()[0] = 4.0;
        let found = verify_spgemm(one.view(), last.view(), wrong_value.view());
        assert_eq!(found.values.worst.unwrap().col, cols - 1);
        assert_eq!(found.values.failures, 1);
        wrong_column.modify(|_, columns, _| columns[0] -= 1);
        let found = verify_spgemm(one.view(), last.view(), wrong_column.view());
        assert_eq!(found.wrong_row.map(|wrong| wrong.row), Some(0));

        // Columns far apart, in rows that share some of them, of a view of a larger matrix.
        let columns = [0, 1 << 20, 1 << 31, u32::MAX - 1];
        let indices = [&columns[1..2], &columns[..3], &columns[1..]].concat();
        let values = vec![9.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let b = CsMatI::new((3, cols), vec![0, 1, 4, 7], indices, values);
        let b = b.slice_outer(1..3);
        let a = CsMatI::new((1, 2), vec![0, 2], vec![0, 1], vec![1.0_f32, 2.0]);
        let c = spgemm(a.view(), b.view());
        assert_eq!(c.indices(), columns);
        assert_eq!(c.data(), [1.0, 10.0, 13.0, 12.0]);
        let c = c.map(|&value| value as f32);
        assert!(verify_spgemm(a.view(), b.view(), c.view()).ok());
    }

    #[test]
    fn empty_matrices_have_an_empty_product() {
        let a = CsMatI::<f64, u32, u32>::new((2, 0), vec![0, 0, 0], vec![], vec![]);
        let b = CsMatI::<f64, u32, u32>::new((0, 3), vec![0], vec![], vec![]);
        let c = spgemm(a.view(), b.view());
        assert_eq!((c.rows(), c.cols(), c.nnz()), (2, 3, 0));
        assert!(verify_spgemm(a.view(), b.view(), c.view()).ok());
    }

    #[test]
    #[should_panic(expected = "a 2 x 3 matrix cannot multiply a 2 x 3 one")]
    fn shapes_that_do_not_fit_panic_with_both_shapes() {
        let (a, _) = operands();
        let _ = spgemm(a.view(), a.view());
    }
}
