//! The comparison of a product with that in f64: of all rows, or of so many as a minute of the host allows.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use sprs::CsMatI;
use std::collections::BTreeSet;
use warprow::reference::verify_spgemm;
use warprow::{CsrMatrix, Scalar};

/// Products that the host computes for a comparison, about.
const MOST_PRODUCTS: u64 = 100_000_000;

/// What a comparison found.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Found {
    /// Rows compared.
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

/// A, B, and the rows of their product that are compared.
pub struct Verifier<'a, T> {
    b: &'a CsrMatrix<T>,
    rows: Option<Vec<usize>>,
    a: CsrMatrix<T>,
    /// Products of each row of C.
    pub products: Vec<u64>,
}

impl<'a, T: Scalar> Verifier<'a, T> {
    /// Chooses the row of most products and random ones.
    pub fn choose(a: &CsrMatrix<T>, b: &'a CsrMatrix<T>, seed: u64) -> Self {
        Self::choose_within(a, b, MOST_PRODUCTS, seed)
    }

    fn choose_within(a: &CsrMatrix<T>, b: &'a CsrMatrix<T>, most: u64, seed: u64) -> Self {
        let lengths = b.indptr();
        let length = |&k: &u32| lengths.nnz_in_outer_sz(k as usize) as u64;
        let products: Vec<u64> = a
            .outer_iterator()
            .map(|row| row.indices().iter().map(length).sum())
            .collect();
        if products.iter().sum::<u64>() <= most {
            return Self {
                b,
                rows: None,
                a: a.clone(),
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
        Self {
            b,
            a: some_rows(a, &rows),
            rows: Some(rows),
            products,
        }
    }

    /// Compares a product.
    pub fn verify(&self, c: &CsrMatrix<T>) -> Found {
        let sample;
        let c = match &self.rows {
            None => c,
            Some(rows) => {
                sample = some_rows(c, rows);
                &sample
            }
        };
        let verification = verify_spgemm(self.a.view(), self.b.view(), c.view());
        if !verification.ok() {
            eprintln!("{verification}");
        }
        Found {
            rows_verified: self.a.rows(),
            max_rel_err: verification.values.max_relative_error,
            ok: verification.ok(),
        }
    }
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
            assert_eq!(found.rows_verified == 300, most == u64::MAX);
            let longest = (0..300).max_by_key(|&row| verifier.products[row]).unwrap();
            let entry = c.indptr().outer_inds_sz(longest).start;
            let mut wrong = c.clone();
            wrong.data_mut()[entry] += 1e-3;
            assert!(!verifier.verify(&wrong).ok);
        }
    }
}
