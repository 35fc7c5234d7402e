//! The comparison of a product with that in f64: entry by entry, or of large products a sample of rows entry by entry
//! and all rows by their sums. And the exact comparison of a product of small whole numbers.

use crate::harness::row_sums::{RowSums, SumWithMagnitude, weights};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use sprs::CsMatI;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use warprow::device::DeviceError;
use warprow::reference::{verify_spgemm, whole_matrix};
use warprow::{CsrMatrix, DeviceBuffer, Element, Scalar};

/// Products that the host computes for a comparison, about.
const MOST_PRODUCTS: u64 = 30_000_000;

/// Rows of a peer's large product that are compared, at most.
const MOST_ROWS_OF_PEER: usize = 1000;

/// What a comparison found.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Found {
    /// Rows compared, entry by entry or by their sums.
    pub rows_verified: usize,
    /// The greatest error relative to `|A||B|`; null if it is not finite.
    pub max_rel_err: f64,
    /// Whether the structure is right and each value within the error that rounding explains.
    pub ok: bool,
}

impl Found {
    /// What this comparison and that of another product found together, of the same rows.
    pub fn and(self, other: Self) -> Self {
        Self {
            rows_verified: self.rows_verified,
            max_rel_err: self.max_rel_err.max(other.max_rel_err),
            ok: self.ok && other.ok,
        }
    }
}

/// A, B, and the rows of their product that are compared entry by entry.
pub struct Verifier<'a, T> {
    a: &'a CsrMatrix<T>,
    b: &'a CsrMatrix<T>,
    sample: Option<Sample<T>>,
    seed: u64,
    /// Products of each row of C.
    pub products: Vec<u64>,
}

/// Some rows of A.
struct Sample<T> {
    rows: Vec<usize>,
    /// The row of most products.
    longest: usize,
    a: CsrMatrix<T>,
    /// The sums of all rows of the product.
    sums: OnceLock<RowSums>,
}

impl<'a, T: Scalar> Verifier<'a, T> {
    /// Chooses the row of most products and random ones.
    pub fn choose(a: &'a CsrMatrix<T>, b: &'a CsrMatrix<T>, seed: u64) -> Self {
        Self::choose_within(a, b, MOST_PRODUCTS, seed)
    }

    fn choose_within(a: &'a CsrMatrix<T>, b: &'a CsrMatrix<T>, most: u64, seed: u64) -> Self {
        let lengths = b.indptr();
        let length = |&k: &u32| lengths.nnz_in_outer_sz(k as usize) as u64;
        let products: Vec<u64> = a
            .outer_iterator()
            .map(|row| row.indices().iter().map(length).sum())
            .collect();
        if products.iter().sum::<u64>() <= most {
            return Self {
                a,
                b,
                sample: None,
                seed,
                products,
            };
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let longest = (0..a.rows()).max_by_key(|&row| products[row]).unwrap_or(0);
        let mut rows = BTreeSet::from([longest]);
        let mut sum = products[longest];
        while sum < most && rows.len() < a.rows() {
            let row = random.random_range(0..a.rows());
            if rows.insert(row) {
                sum += products[row] + 1;
            }
        }
        let rows: Vec<usize> = rows.into_iter().collect();
        let sample = Sample {
            a: some_rows(a, &rows),
            rows,
            longest,
            sums: OnceLock::new(),
        };
        Self {
            a,
            b,
            sample: Some(sample),
            seed,
            products,
        }
    }

    /// Compares a product.
    pub fn verify(&self, c: &CsrMatrix<T>) -> Found {
        let (verification, wrong_row) = match &self.sample {
            None => (verify_spgemm(self.a.view(), self.b.view(), c.view()), None),
            Some(sample) => {
                let rows = some_rows(c, &sample.rows);
                let verification = verify_spgemm(sample.a.view(), self.b.view(), rows.view());
                (verification, self.wrong_row(sample, c))
            }
        };
        if !verification.ok() {
            eprintln!("{verification}");
        }
        if let Some(row) = wrong_row {
            eprintln!("wrong: the sum of row {row}");
        }
        Found {
            rows_verified: self.a.rows(),
            max_rel_err: verification.values.max_relative_error,
            ok: verification.ok() && wrong_row.is_none(),
        }
    }

    /// Compares a peer's product on the device, whose rows may not be sorted: of a large one some rows, the one of most
    /// products among them.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn verify_peer(
        &self,
        row_ptr: &DeviceBuffer<u32>,
        columns: &DeviceBuffer<u32>,
        values: &DeviceBuffer<T>,
    ) -> Result<Found, DeviceError>
    where
        T: Element,
    {
        let row_ptr = row_ptr.download()?;
        let Some(sample) = &self.sample else {
            let shape = (self.a.rows(), self.b.cols());
            let c = sorted(shape, row_ptr, &columns.download()?, &values.download()?);
            return Ok(self.verify(&c));
        };
        let longest = (sample.rows.iter()).position(|&row| row == sample.longest);
        let step = sample.rows.len().div_ceil(MOST_ROWS_OF_PEER);
        let places: BTreeSet<usize> = (0..sample.rows.len())
            .step_by(step)
            .chain(longest)
            .collect();
        let places: Vec<usize> = places.into_iter().collect();
        let (mut ends, mut some_columns, mut some_values) = (vec![0], Vec::new(), Vec::new());
        for &place in &places {
            let row = sample.rows[place];
            let start = row_ptr[row] as usize;
            let count = row_ptr[row + 1] as usize - start;
            let before = some_columns.len();
            some_columns.resize(before + count, 0);
            columns.copy_part_to_slice(start, &mut some_columns[before..])?;
            some_values.resize(before + count, T::ONE);
            values.copy_part_to_slice(start, &mut some_values[before..])?;
            ends.push(some_columns.len() as u32);
        }
        let shape = (places.len(), self.b.cols());
        let c = sorted(shape, ends, &some_columns, &some_values);
        let a = some_rows(&sample.a, &places);
        let verification = verify_spgemm(a.view(), self.b.view(), c.view());
        if !verification.ok() {
            eprintln!("{verification}");
        }
        Ok(Found {
            rows_verified: places.len(),
            max_rel_err: verification.values.max_relative_error,
            ok: verification.ok(),
        })
    }

    /// The first row whose sum is wrong.
    fn wrong_row(&self, sample: &Sample<T>, c: &CsrMatrix<T>) -> Option<usize> {
        let sums = sample.sums.get_or_init(|| {
            let weights = weights(self.b.cols(), self.seed);
            let weighted = |k| {
                let row = self.b.outer_view(k).expect("the row is one of the matrix");
                SumWithMagnitude::of(row.iter().map(|(column, b)| b.to_f64() * weights[column]))
            };
            let of_right: Vec<SumWithMagnitude> = parallel::map(self.b.rows(), weighted);
            RowSums::new(self.a.view(), &of_right, weights)
        });
        let is_wrong = |row: usize| {
            let row_of_c = c.outer_view(row).expect("the row is one of the matrix");
            let entries = row_of_c.iter().map(|(column, &value)| (column, value));
            !sums.is_right(row, entries, None)
        };
        parallel::find_first(c.rows(), &is_wrong)
    }

    /// A and B with small whole numbers in the place of their values.
    pub fn whole_operands(&self) -> [CsrMatrix<T>; 2] {
        let (a, b) = (self.a.view(), self.b.view());
        [whole_matrix(a, self.seed), whole_matrix(b, self.seed + 1)]
    }

    /// Whether `c` is the product of these [whole operands](Self::whole_operands), exactly: entry by entry, or if it is
    /// large by sums of its rows modulo 2^64.
    pub fn is_exact(&self, [a, b]: &[CsrMatrix<T>; 2], c: &CsrMatrix<T>) -> bool {
        if self.sample.is_none() {
            let found = verify_spgemm(a.view(), b.view(), c.view());
            return found.ok() && found.values.is_exact();
        }
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        // An odd weight keeps any error.
        let weights: Vec<u64> = (0..b.cols()).map(|_| random.random::<u64>() | 1).collect();
        let sums = |matrix: &CsrMatrix<T>, weights: &[u64]| -> Vec<u64> {
            let sum = |row| {
                let row = matrix
                    .outer_view(row)
                    .expect("the row is one of the matrix");
                let terms = row.iter().map(|(column, value)| {
                    let value = value.to_f64();
                    // A number that is not whole is wrong in any case.
                    let whole = if value.fract() == 0.0 {
                        value as i64
                    } else {
                        i64::MAX
                    };
                    (whole as u64).wrapping_mul(weights[column])
                });
                terms.fold(0, u64::wrapping_add)
            };
            parallel::map(matrix.rows(), sum)
        };
        sums(c, &weights) == sums(a, &sums(b, &weights))
    }
}

/// The matrix of rows that may not be sorted.
fn sorted<T: Scalar>(
    shape: (usize, usize),
    row_ptr: Vec<u32>,
    columns: &[u32],
    values: &[T],
) -> CsrMatrix<T> {
    let entries: Vec<(u32, T)> = parallel::flat_map(shape.0, |row, sorted| {
        let row = row_ptr[row] as usize..row_ptr[row + 1] as usize;
        let first = sorted.len();
        let columns = columns[row.clone()].iter().copied();
        sorted.extend(columns.zip(values[row].iter().copied()));
        sorted[first..].sort_unstable_by_key(|&(column, _)| column);
    });
    let (columns, values) = entries.into_iter().unzip();
    CsMatI::new(shape, row_ptr, columns, values)
}

/// The matrix of some of a matrix's rows.
fn some_rows<T: Scalar>(matrix: &CsrMatrix<T>, rows: &[usize]) -> CsrMatrix<T> {
    let (mut row_ptr, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for &row in rows {
        let row = matrix
            .outer_view(row)
            .expect("the row is one of the matrix");
        columns.extend_from_slice(row.indices());
        values.extend_from_slice(row.data());
        row_ptr.push(columns.len() as u32);
    }
    CsMatI::new((rows.len(), matrix.cols()), row_ptr, columns, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warprow::{generate, reference};

    #[test]
    fn a_wrong_entry_of_a_compared_row_is_found() {
        let a = generate::rmat::<f64>(300, 2000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
        let c = reference::spgemm(a.view(), a.view());
        for most in [1000, u64::MAX] {
            let verifier = Verifier::choose_within(&a, &a, most, 1);
            let found = verifier.verify(&c);
            assert!(found.ok);
            assert_eq!(
                (found.rows_verified, verifier.sample.is_none()),
                (300, most == u64::MAX)
            );
            let longest = (0..300).max_by_key(|&row| verifier.products[row]).unwrap();
            let entry = c.indptr().outer_inds_sz(longest).start;
            let mut wrong = c.clone();
            wrong.data_mut()[entry] += 1e-3;
            assert!(!verifier.verify(&wrong).ok);
        }
    }

    #[test]
    fn a_wrong_entry_of_any_row_is_found() {
        let a = generate::rmat::<f64>(300, 2000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
        let c = reference::spgemm(a.view(), a.view());
        let verifier = Verifier::choose_within(&a, &a, 10, 1);
        for row in 0..300 {
            for entry in c.indptr().outer_inds_sz(row).take(1) {
                let mut wrong = c.clone();
                wrong.data_mut()[entry] += 1e-9;
                assert!(!verifier.verify(&wrong).ok, "row {row}");
            }
        }
    }

    #[test]
    fn a_peers_rows_may_be_in_any_order_and_a_wrong_one_is_found() {
        let device = warprow::device::Device::emulator(Default::default());
        let a = generate::rmat::<f64>(300, 2000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
        let c = reference::spgemm(a.view(), a.view());
        let row_ptr: Vec<u32> = c.proper_indptr().to_vec();
        let (mut columns, mut values) = (c.indices().to_vec(), c.data().to_vec());
        for ends in row_ptr.windows(2) {
            let row = ends[0] as usize..ends[1] as usize;
            columns[row.clone()].reverse();
            values[row].reverse();
        }
        let row_ptr = device.upload(&row_ptr).unwrap();
        let columns = device.upload(&columns).unwrap();
        for most in [1000, u64::MAX] {
            let verifier = Verifier::choose_within(&a, &a, most, 1);
            let right = device.upload(&values).unwrap();
            let found = verifier.verify_peer(&row_ptr, &columns, &right).unwrap();
            assert!(found.ok && found.rows_verified > 0);
            let longest = (0..300).max_by_key(|&row| verifier.products[row]).unwrap();
            let mut wrong = values.clone();
            wrong[c.indptr().outer_inds_sz(longest).start] += 1e-3;
            let wrong = device.upload(&wrong).unwrap();
            assert!(!verifier.verify_peer(&row_ptr, &columns, &wrong).unwrap().ok);
        }
    }

    #[test]
    fn a_product_of_whole_numbers_is_exact_or_wrong() {
        let a = generate::rmat::<f32>(300, 2000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
        for most in [1000, u64::MAX] {
            let verifier = Verifier::choose_within(&a, &a, most, 1);
            let whole = verifier.whole_operands();
            let c = reference::spgemm(whole[0].view(), whole[1].view()).map(|&c| c as f32);
            assert!(verifier.is_exact(&whole, &c));
            for error in [1.0, 0.5, f32::NAN] {
                let mut wrong = c.clone();
                wrong.data_mut()[1234] += error;
                assert!(!verifier.is_exact(&whole, &wrong), "{error}");
            }
        }
    }
}
