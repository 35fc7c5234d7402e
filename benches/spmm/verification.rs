//! Comparison of a product with the one in f64: entry by entry, or of large products a sample of rows entry by entry
//! and all rows by their sums.

use crate::harness::row_sums::{RowSums, SumWithMagnitude, weights};
use ndarray::{Array2, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sprs::{CsMatI, CsMatViewI};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;
use warprow::device::DeviceBuffer;
use warprow::reference::{Operation, Verification};
use warprow::{Element, Error, Scalar};

/// Products of a nonzero and an element of X that one comparison computes at most, some rows more or less: a fifth of a
/// second of two cores.
const MOST_TERMS: u64 = 1 << 26;

/// Neighbouring rows that a sample takes together, as one copy from the device costs as much as their bytes.
const RUN: usize = 16;

/// Runs of a sample, at most.
const MOST_RUNS: usize = 512;

/// Elements of Y that are fetched at a time.
const FETCHED: usize = 1 << 24;

/// The rows of a matrix that are compared.
#[derive(Debug)]
pub struct VerifiedRows<'a, T: Scalar + Element> {
    a: CsMatViewI<'a, T, u32, u32>,
    sample: Option<Sample<T>>,
    /// The sums of all rows of the product with the first X, if there is a sample.
    sums: OnceLock<RowSums>,
    seed: u64,
}

/// What a comparison found.
#[derive(Debug)]
pub struct Found {
    /// In the rows that were compared entry by entry.
    pub entries: Verification,
    /// The first row whose sum is wrong, if there is one.
    pub wrong_row: Option<usize>,
    /// How many rows were compared, entry by entry or by their sums.
    pub rows: usize,
}

impl Found {
    /// Whether all entries and all sums are right.
    pub fn ok(&self) -> bool {
        self.entries.ok() && self.wrong_row.is_none()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(row) = self.wrong_row {
            write!(f, "wrong: the sum of row {row}; ")?;
        }
        self.entries.fmt(f)
    }
}

#[derive(Debug)]
struct Sample<T> {
    /// Sorted, apart from each other, and never empty.
    runs: Vec<Range<usize>>,
    /// Their rows.
    a: CsMatI<T, u32, u32>,
}

impl<'a, T: Scalar + Element> VerifiedRows<'a, T> {
    /// All rows of `a` if their products with `features` columns are few enough, else the longest row, which is where
    /// kernels differ most, and runs of others at random.
    pub fn choose(a: CsMatViewI<'a, T, u32, u32>, features: u32, seed: u64) -> Self {
        Self::choose_within(a, MOST_TERMS / u64::from(features), seed)
    }

    /// As [`choose`](Self::choose), with the number of nonzeros that may be compared.
    fn choose_within(a: CsMatViewI<'a, T, u32, u32>, most_nonzeros: u64, seed: u64) -> Self {
        let sample = (a.nnz() as u64 > most_nonzeros).then(|| {
            let runs = random_runs(&a, most_nonzeros, seed);
            let a = submatrix(&a, &runs);
            Sample { runs, a }
        });
        Self {
            a,
            sample,
            sums: OnceLock::new(),
            seed,
        }
    }

    /// Nonzeros of A.
    pub fn nonzeros(&self) -> usize {
        self.a.nnz()
    }

    /// Nonzeros of the longest row of A.
    pub fn longest_row(&self) -> usize {
        let indptr = self.a.indptr();
        let lengths = (0..self.a.rows()).map(|row| indptr.nnz_in_outer_sz(row));
        lengths.max().unwrap_or(0)
    }

    /// How many rows are compared entry by entry.
    fn count(&self) -> usize {
        self.sample
            .as_ref()
            .map_or(self.a.rows(), |sample| sample.a.rows())
    }

    /// Fetches `y` and compares it with `A x`, where x is the same in all calls: the sample of rows, if there is one,
    /// and if wanted `all_rows` by their sums. The row of the worst entry is one of A.
    ///
    /// # Errors
    ///
    /// The device's: that of a launch before, above all.
    ///
    /// # Panics
    ///
    /// If the shapes do not fit.
    pub fn verify(
        &self,
        x: ArrayView2<'_, T>,
        y: &DeviceBuffer<T>,
        depth: Option<usize>,
        all_rows: bool,
    ) -> Result<Found, Error> {
        let operation = Operation::new().depth(depth);
        let features = x.ncols();
        assert_eq!(y.len(), self.a.rows() * features);
        let mut rows = Array2::from_elem((self.count(), features), T::ONE);
        let mut to = rows.as_slice_mut().expect("a new array is contiguous");
        let Some(sample) = &self.sample else {
            y.copy_to_slice(to)?;
            return Ok(Found {
                entries: operation.verify(self.a.view(), x, rows.view()),
                wrong_row: None,
                rows: self.a.rows(),
            });
        };
        for run in &sample.runs {
            let (part, rest) = std::mem::take(&mut to).split_at_mut(run.len() * features);
            y.copy_part_to_slice(run.start * features, part)?;
            to = rest;
        }
        let mut found = operation.verify(sample.a.view(), x, rows.view());
        if let Some(worst) = &mut found.worst {
            let mut all_rows = sample.runs.iter().cloned().flatten();
            worst.row = all_rows.nth(worst.row).expect("it is a row of the sample");
        }
        Ok(Found {
            entries: found,
            wrong_row: if all_rows {
                self.wrong_row(x, y, depth)?
            } else {
                None
            },
            rows: if all_rows {
                self.a.rows()
            } else {
                self.count()
            },
        })
    }

    /// The first row of `y` whose sum is not that of `A x`.
    fn wrong_row(
        &self,
        x: ArrayView2<'_, T>,
        y: &DeviceBuffer<T>,
        depth: Option<usize>,
    ) -> Result<Option<usize>, Error> {
        let features = x.ncols();
        let sums = self.sums.get_or_init(|| {
            let weights = weights(features, self.seed);
            let weighted = |k| {
                let elements = x.row(k).into_iter().zip(&weights);
                SumWithMagnitude::of(elements.map(|(x, weight)| x.to_f64() * weight))
            };
            let of_right: Vec<SumWithMagnitude> = parallel::map(x.nrows(), weighted);
            RowSums::new(self.a.view(), &of_right, weights)
        });
        let rows_at_once = (FETCHED / features.max(1)).max(1);
        let mut fetched = Vec::new();
        for first in (0..self.a.rows()).step_by(rows_at_once) {
            let count = rows_at_once.min(self.a.rows() - first);
            fetched.resize(count * features, T::ONE);
            y.copy_part_to_slice(first * features, &mut fetched)?;
            let is_wrong = |row: usize| {
                let entries = fetched[row * features..][..features].iter().copied();
                !sums.is_right(first + row, entries.enumerate(), depth)
            };
            if let Some(row) = parallel::find_first(count, &is_wrong) {
                return Ok(Some(first + row));
            }
        }
        Ok(None)
    }
}

/// The longest row, and random runs until they have `most_nonzeros` or there are enough of them; sorted.
fn random_runs<T: Scalar + Element>(
    a: &CsMatViewI<'_, T, u32, u32>,
    most_nonzeros: u64,
    seed: u64,
) -> Vec<Range<usize>> {
    let indptr = a.indptr();
    let nonzeros =
        |rows: Range<usize>| -> u64 { rows.map(|row| indptr.nnz_in_outer_sz(row) as u64).sum() };
    let Some(longest) = (0..a.rows()).max_by_key(|&row| nonzeros(row..row + 1)) else {
        return Vec::new();
    };
    let run_of = |start: usize| start..a.rows().min(start + RUN);
    let mut taken = 0;
    let mut starts = BTreeSet::new();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Fewer draws find no more runs; more of them find all runs of a small matrix again and again.
    for _ in 0..2 * MOST_RUNS {
        if taken >= most_nonzeros || starts.len() == MOST_RUNS {
            break;
        }
        let start = rng.random_range(0..a.rows()) / RUN * RUN;
        let run = run_of(start);
        if !run.contains(&longest) && starts.insert(start) {
            taken += nonzeros(run);
        }
    }
    let mut runs: Vec<_> = starts.into_iter().map(run_of).collect();
    let place = runs.partition_point(|run| run.start < longest);
    runs.insert(place, longest..longest + 1);
    runs
}

/// These rows of `a`.
fn submatrix<T: Scalar + Element>(
    a: &CsMatViewI<'_, T, u32, u32>,
    runs: &[Range<usize>],
) -> CsMatI<T, u32, u32> {
    let mut indptr = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for row in runs.iter().cloned().flatten() {
        let range = a.indptr().outer_inds_sz(row);
        indices.extend_from_slice(&a.indices()[range.clone()]);
        values.extend_from_slice(&a.data()[range]);
        // At most the nonzeros of `a`, whose row pointers are u32.
        indptr.push(indices.len() as u32);
    }
    CsMatI::new((indptr.len() - 1, a.cols()), indptr, indices, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warprow::device::Device;
    use warprow::{generate, reference};

    fn product() -> (CsMatI<f64, u32, u32>, Array2<f64>, Array2<f64>) {
        let a = generate::rmat(257, 3_001, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
        let x = generate::dense(257, 5, 4).unwrap();
        let y = reference::spmm(a.view(), x.view());
        (a, x, y)
    }

    fn verify(rows: &VerifiedRows<'_, f64>, x: &Array2<f64>, y: &Array2<f64>) -> Found {
        let device = Device::emulator(Default::default());
        let y = device.upload(y.as_slice().unwrap()).unwrap();
        rows.verify(x.view(), &y, None, true).unwrap()
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
        assert!(verify(&rows, &x, &y).ok());
        for row in 0..257 {
            let right = y[(row, 2)];
            y[(row, 2)] = right + 1e-6;
            assert!(!verify(&rows, &x, &y).ok(), "row {row}");
            y[(row, 2)] = right;
        }
    }

    #[test]
    fn a_sample_has_the_longest_row_and_no_more_nonzeros_than_a_run_too_many() {
        let (a, ..) = product();
        for most in [0, 1, 500, 2_000, 3_000] {
            let rows = VerifiedRows::choose_within(a.view(), most, 1);
            let sample = rows.sample.as_ref().unwrap();
            let longest = longest(&a);
            assert!(sample.runs.contains(&(longest..longest + 1)));
            assert!(
                sample
                    .runs
                    .windows(2)
                    .all(|pair| pair[0].end <= pair[1].start)
            );
            let before_last = sample.runs.iter().map(|run| {
                let nonzeros = |row| a.indptr().nnz_in_outer_sz(row) as u64;
                run.clone().map(nonzeros).sum::<u64>()
            });
            let nonzeros = (sample.a.nnz() - a.indptr().nnz_in_outer_sz(longest)) as u64;
            assert!(nonzeros <= most + before_last.max().unwrap());
            assert_eq!(rows.count(), sample.a.rows());
        }
        assert!(VerifiedRows::choose_within(a.view(), 500, 1).count() > 20);
    }

    #[test]
    fn an_error_in_any_sampled_row_is_found_and_named_by_its_row_in_the_matrix() {
        let (a, x, mut y) = product();
        let rows = VerifiedRows::choose_within(a.view(), 500, 1);
        assert!(verify(&rows, &x, &y).ok());
        let sampled: Vec<_> = rows.sample.as_ref().unwrap().runs.clone();
        for row in sampled.into_iter().flatten() {
            let right = y[(row, 3)];
            y[(row, 3)] = f64::NAN;
            let found = verify(&rows, &x, &y);
            assert!(!found.ok());
            let worst = found.entries.worst.unwrap();
            assert_eq!((worst.row, worst.col), (row, 3));
            y[(row, 3)] = right;
        }
    }

    #[test]
    fn an_error_in_any_row_beside_the_sample_is_found_by_its_sum() {
        let (a, x, mut y) = product();
        let rows = VerifiedRows::choose_within(a.view(), 100, 1);
        assert!(verify(&rows, &x, &y).ok());
        for row in 0..257 {
            let right = y[(row, 3)];
            for wrong in [right + 1e-9, f64::NAN, f64::INFINITY] {
                y[(row, 3)] = wrong;
                let found = verify(&rows, &x, &y);
                assert!(!found.ok());
                assert_eq!(found.wrong_row, Some(row));
            }
            y[(row, 3)] = right;
        }
    }

    #[test]
    fn the_sums_of_16_bit_results_may_err_by_their_rounding() {
        use warprow::f16;
        let a = generate::rmat::<f16>(257, 3_001, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
        let x = generate::dense::<f16>(257, 5, 4).unwrap();
        let mut y = reference::spmm(a.view(), x.view()).mapv(<f16 as Scalar>::from_f64);
        let device = Device::emulator(Default::default());
        let rows = VerifiedRows::choose_within(a.view(), 100, 1);
        let upload = |y: &Array2<f16>| device.upload(y.as_slice().unwrap()).unwrap();
        assert!(rows.verify(x.view(), &upload(&y), None, true).unwrap().ok());
        y[(40, 2)] += f16::from_f32(0.25);
        assert!(!rows.verify(x.view(), &upload(&y), None, true).unwrap().ok());
    }

    #[test]
    fn the_sample_is_the_same_for_the_same_seed() {
        let (a, ..) = product();
        let runs = |seed| {
            let rows = VerifiedRows::choose_within(a.view(), 500, seed);
            rows.sample.unwrap().runs
        };
        assert_eq!(runs(1), runs(1));
        assert_ne!(runs(1), runs(2));
    }

    #[test]
    fn a_matrix_without_rows_is_compared() {
        let a = CsMatI::<f64, u32, u32>::new((0, 3), vec![0], vec![], vec![]);
        let rows = VerifiedRows::choose(a.view(), 2, 1);
        assert!(verify(&rows, &Array2::zeros((3, 2)), &Array2::zeros((0, 2))).ok());
    }
}
