//! Comparison of a product with the one in f64: of all rows, or of a sample where all would take too long.

use ndarray::{ArrayView2, Axis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sprs::{CsMatI, CsMatViewI};
use std::collections::BTreeSet;
use warprow::Scalar;
use warprow::reference::{Verification, verify_spmm};

/// Products of a nonzero and an element of X that one comparison computes at most, a row more or less: some seconds of
/// two cores.
const MOST_TERMS: u64 = 1 << 30;

/// The rows of a matrix that are compared.
#[derive(Debug)]
pub struct VerifiedRows<'a, T: Scalar> {
    a: CsMatViewI<'a, T, u32, u32>,
    sample: Option<Sample<T>>,
}

#[derive(Debug)]
struct Sample<T> {
    rows: Vec<usize>,
    a: CsMatI<T, u32, u32>,
}

impl<'a, T: Scalar> VerifiedRows<'a, T> {
    /// All rows of `a` if their products with `features` columns are few enough, else the longest row, which is where
    /// kernels differ most, and others at random.
    pub fn choose(a: CsMatViewI<'a, T, u32, u32>, features: u32, seed: u64) -> Self {
        Self::choose_within(a, MOST_TERMS / u64::from(features), seed)
    }

    /// As [`choose`](Self::choose), with the number of nonzeros that may be compared.
    fn choose_within(a: CsMatViewI<'a, T, u32, u32>, most_nonzeros: u64, seed: u64) -> Self {
        let sample = (a.nnz() as u64 > most_nonzeros).then(|| {
            let rows = random_rows(&a, most_nonzeros, seed);
            let a = submatrix(&a, &rows);
            Sample { rows, a }
        });
        Self { a, sample }
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.sample
            .as_ref()
            .map_or(self.a.rows(), |sample| sample.rows.len())
    }

    /// Compares `y` with `A x` in these rows. The row of the worst entry is one of A.
    ///
    /// # Panics
    ///
    /// If the shapes do not fit.
    pub fn verify(&self, x: ArrayView2<'_, T>, y: ArrayView2<'_, T>) -> Verification {
        let Some(sample) = &self.sample else {
            return verify_spmm(self.a.view(), x, y);
        };
        assert_eq!(y.nrows(), self.a.rows());
        let y = y.select(Axis(0), &sample.rows);
        let mut found = verify_spmm(sample.a.view(), x, y.view());
        if let Some(worst) = &mut found.worst {
            worst.row = sample.rows[worst.row];
        }
        found
    }
}

/// The longest row and random ones, until `most_nonzeros` is reached or as many were drawn as there are; sorted.
fn random_rows<T: Scalar>(
    a: &CsMatViewI<'_, T, u32, u32>,
    most_nonzeros: u64,
    seed: u64,
) -> Vec<usize> {
    let indptr = a.indptr();
    let length = |row| indptr.nnz_in_outer_sz(row) as u64;
    let longest = (0..a.rows()).max_by_key(|&row| length(row));
    let mut nonzeros = longest.map_or(0, length);
    let mut rows: BTreeSet<_> = longest.into_iter().collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for _ in 0..a.rows() {
        if nonzeros >= most_nonzeros {
            break;
        }
        let row = rng.random_range(0..a.rows());
        if rows.insert(row) {
            nonzeros += length(row);
        }
    }
    rows.into_iter().collect()
}

/// These rows of `a`.
fn submatrix<T: Scalar>(a: &CsMatViewI<'_, T, u32, u32>, rows: &[usize]) -> CsMatI<T, u32, u32> {
    let mut indptr = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for &row in rows {
        let range = a.indptr().outer_inds_sz(row);
        indices.extend_from_slice(&a.indices()[range.clone()]);
        values.extend_from_slice(&a.data()[range]);
        // At most the nonzeros of `a`, whose row pointers are u32.
        indptr.push(indices.len() as u32);
    }
    CsMatI::new((rows.len(), a.cols()), indptr, indices, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use warprow::{generate, reference};

    fn product() -> (CsMatI<f64, u32, u32>, Array2<f64>, Array2<f64>) {
        let a = generate::rmat(257, 3_001, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
        let x = generate::dense(257, 5, 4);
        let y = reference::spmm(a.view(), x.view());
        (a, x, y)
    }

    fn longest(a: &CsMatI<f64, u32, u32>) -> usize {
        let length = |row: usize| a.indptr().nnz_in_outer_sz(row);
        (0..a.rows()).max_by_key(|&row| length(row)).unwrap()
    }

    #[test]
    fn a_small_product_is_compared_in_all_rows() {
        let (a, x, mut y) = product();
        let rows = VerifiedRows::choose(a.view(), 5, 1);
        assert_eq!(rows.count(), 257);
        assert!(rows.verify(x.view(), y.view()).ok());
        for row in 0..257 {
            let right = y[(row, 2)];
            y[(row, 2)] = right + 1e-6;
            assert!(!rows.verify(x.view(), y.view()).ok(), "row {row}");
            y[(row, 2)] = right;
        }
    }

    #[test]
    fn a_sample_has_the_longest_row_and_no_more_nonzeros_than_a_row_too_many() {
        let (a, ..) = product();
        for most in [0, 1, 500, 2_000, 3_000] {
            let rows = VerifiedRows::choose_within(a.view(), most, 1);
            let sample = rows.sample.as_ref().unwrap();
            assert!(sample.rows.contains(&longest(&a)));
            assert!(sample.rows.is_sorted());
            let length = |row: &usize| a.indptr().nnz_in_outer_sz(*row) as u64;
            assert!(sample.a.nnz() as u64 <= most + length(&longest(&a)));
            assert_eq!(rows.count(), sample.a.rows());
        }
        assert!(VerifiedRows::choose_within(a.view(), 500, 1).count() > 20);
    }

    #[test]
    fn an_error_in_a_sampled_row_is_found_and_named_by_its_row_in_the_matrix() {
        let (a, x, mut y) = product();
        let rows = VerifiedRows::choose_within(a.view(), 500, 1);
        assert!(rows.verify(x.view(), y.view()).ok());
        let sampled = rows.sample.as_ref().unwrap().rows.clone();
        let row = *sampled.last().unwrap();
        y[(row, 3)] = f64::NAN;
        let found = rows.verify(x.view(), y.view());
        assert!(!found.ok());
        let worst = found.worst.unwrap();
        assert_eq!((worst.row, worst.col), (row, 3));
    }

    #[test]
    fn the_sample_is_the_same_for_the_same_seed() {
        let (a, ..) = product();
        let rows = |seed| {
            let rows = VerifiedRows::choose_within(a.view(), 500, seed);
            rows.sample.unwrap().rows
        };
        assert_eq!(rows(1), rows(1));
        assert_ne!(rows(1), rows(2));
    }

    #[test]
    fn a_matrix_without_rows_is_compared() {
        let a = CsMatI::<f32, u32, u32>::new((0, 3), vec![0], vec![], vec![]);
        let rows = VerifiedRows::choose(a.view(), 2, 1);
        let (x, y) = (Array2::zeros((3, 2)), Array2::zeros((0, 2)));
        assert!(rows.verify(x.view(), y.view()).ok());
    }
}
