//! The comparison of every row of a product: the sum of its entries, each times a random weight of its column.
//!
//! With weights r, row i of `Y = A X` has the sum `(A (X r))_i`, which costs a multiplication for each nonzero of A
//! instead of one for each product. A wrong entry changes its row's sum, unless it hides in the rounding errors of all
//! entries of the row.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sprs::CsMatViewI;
use warprow::Scalar;

/// A number, and the sum of the magnitudes of its terms.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumWithMagnitude {
    value: f64,
    magnitude: f64,
}

impl SumWithMagnitude {
    /// That of some terms.
    pub fn of(terms: impl Iterator<Item = f64>) -> Self {
        terms.fold(Self::default(), |sum, term| Self {
            value: sum.value + term,
            magnitude: sum.magnitude + term.abs(),
        })
    }
}

/// The sums that the rows of a product have.
#[derive(Debug)]
pub struct RowSums {
    weights: Vec<f64>,
    wanted: Vec<SumWithMagnitude>,
    /// The nonzeros of each row of A.
    nonzeros: Vec<usize>,
}

/// Random weights for so many columns.
pub fn weights(columns: usize, seed: u64) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..columns)
        .map(|_| {
            let weight = random.random_range(0.5..1.5);
            if random.random() { weight } else { -weight }
        })
        .collect()
}

impl RowSums {
    /// Those of the product of `a` and a matrix whose rows have the weighted sums `of_right`.
    pub fn new<T: Scalar>(
        a: CsMatViewI<'_, T, u32, u32>,
        of_right: &[SumWithMagnitude],
        weights: Vec<f64>,
    ) -> Self {
        let row = |row| a.outer_view(row).expect("the row is one of the matrix");
        let wanted = parallel::map(a.rows(), |i| {
            let mut sum = SumWithMagnitude::default();
            for (k, &value) in row(i).iter() {
                let value = value.to_f64();
                sum.value += value * of_right[k].value;
                sum.magnitude += value.abs() * of_right[k].magnitude;
            }
            sum
        });
        Self {
            wanted,
            nonzeros: (0..a.rows()).map(|i| row(i).nnz()).collect(),
            weights,
        }
    }

    /// Whether row `row` is right: its entries by their columns, each summed with at most `depth` roundings of a term,
    /// or without that number in any order.
    pub fn is_right<T: Scalar>(
        &self,
        row: usize,
        entries: impl Iterator<Item = (usize, T)>,
        depth: Option<usize>,
    ) -> bool {
        let terms = entries.map(|(column, value)| self.weights[column] * value.to_f64());
        let (found, wanted) = (SumWithMagnitude::of(terms), self.wanted[row]);
        let is_narrow = T::UNIT_ROUNDOFF > T::SUM_UNIT_ROUNDOFF;
        let of_rounding = if is_narrow {
            1.01 * T::UNIT_ROUNDOFF
        } else {
            0.0
        };
        let underflows = self.weights.len() as f64 * 2.0 * T::MIN_NORMAL;
        let (terms, columns) = (self.nonzeros[row], self.weights.len());
        let depth = depth.map_or(terms, |depth| depth.min(terms)) as f64;
        // Of this comparison itself.
        let own = (2 * terms + 2 * columns) as f64 * f64::UNIT_ROUNDOFF;
        let of_sums = 1.01 * (depth * T::SUM_UNIT_ROUNDOFF + own) * wanted.magnitude;
        let bound = of_sums + of_rounding * found.magnitude + underflows;
        // A NaN is within no bound.
        (found.value - wanted.value).abs() <= bound
    }
}
