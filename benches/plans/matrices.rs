//! The matrices, and the split into those for fitting and those for validation. Both kinds and sizes differ between
//! the sets. The split was made before any of them was measured. Random matrices are split by kind; those for fitting
//! include R-MAT with any first quadrant from 0.25 to 0.6, so `rmat45` is no longer of a kind that the fit has not seen.

mod few_rows;
mod list;

use crate::harness::by_rows::{constant_rows, grid, power_law};
use crate::spmm::random::{self, RandomProduct};
use clap::ValueEnum;
use serde::Serialize;
use sprs::CsMatI;
use std::borrow::Cow;
use std::collections::BTreeSet;
use warprow::generate::{self, Communities, GenerateError};

/// All matrices but random ones.
pub fn all() -> impl Iterator<Item = &'static Matrix> {
    list::MATRICES.iter().chain(few_rows::FEW_ROWS)
}

/// So many random matrices, each with numbers of features: those of its own product and of the next two, each once, if
/// it fits in the same limits with them.
pub fn random(count: u32, seed: u64) -> Vec<(Matrix, Vec<u32>)> {
    let products = random::products(count + 2, seed, false);
    let with_features = |three: &[RandomProduct]| {
        let features = three.iter().map(|product| product.features);
        let fits = |&features: &u32| three[0].with_features(features).is_some();
        let features: BTreeSet<u32> = features.filter(fits).collect();
        (Matrix::random(three[0]), features.into_iter().collect())
    };
    products.windows(3).map(with_features).collect()
}

/// What a matrix is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Set {
    /// `scripts/fit-spmm-plan` fits the constants of the cost model to these, but for those with few rows.
    Fitting,
    /// The cost model is judged by these, and nothing is fitted to them.
    Validation,
    /// Small, for the emulator, which has no times.
    Emulator,
}

impl Set {
    /// The numbers of features.
    pub const fn features(self) -> &'static [u32] {
        match self {
            // The kernels' instances for f32 are all among them.
            Self::Fitting => &[4, 8, 16, 32, 41, 50, 64, 100, 128, 256],
            Self::Validation => &[6, 12, 16, 33, 48, 96, 128, 200],
            Self::Emulator => &[5, 32],
        }
    }
}

/// A matrix.
#[derive(Clone, Debug, Serialize)]
pub struct Matrix {
    /// Its name.
    #[serde(rename = "matrix")]
    pub name: Cow<'static, str>,
    /// What it is for.
    pub set: Set,
    /// The distribution of its nonzeros.
    pub kind: &'static str,
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    #[serde(skip)]
    rule: Rule,
}

/// How nonzeros are placed.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// R-MAT: the nonzeros, and the probabilities of the quadrants in percent.
    Rmat(u32, [u8; 4]),
    /// Each entry as likely as the other: the nonzeros.
    Uniform(u32),
    /// Planted communities of similar sizes, rows of similar lengths: the nonzeros, the sizes, whether shuffled.
    Communities(u32, (u32, u32), bool),
    /// Communities and rows with power laws: the mean row, whether shuffled.
    PowerLaw(u32, bool),
    /// Nonzeros below and above the diagonal.
    Banded(u32, u32),
    /// The nonzeros of each row.
    Constant(u32),
    /// A grid with five-point neighbourhoods: its side.
    Grid(u32),
    /// That of a random product.
    Random(RandomProduct),
}

use Rule::{Banded, Constant, Grid, PowerLaw, Rmat, Uniform};

impl Matrix {
    /// That of a random product: for fitting if its rule is also that of a matrix for fitting.
    fn random(product: RandomProduct) -> Self {
        use random::Rule::{Communities, Rmat, Uniform};
        let set = match product.rule {
            Rmat(_) | Uniform | Communities(_) => Set::Fitting,
            _ => Set::Validation,
        };
        Self {
            name: format!("random_{}", product.index).into(),
            set,
            kind: product.kind(),
            rows: product.rows,
            cols: product.cols,
            rule: Rule::Random(product),
        }
    }

    /// The matrix; the same for the same seed.
    pub fn generate(&self, seed: u64) -> Result<CsMatI<f32, u32, u32>, GenerateError> {
        let (rows, cols) = (self.rows, self.cols);
        match self.rule {
            Rmat(nonzeros, quadrants) => {
                let quadrants = quadrants.map(|percent| f64::from(percent) / 100.0);
                generate::rmat(rows, nonzeros, quadrants, seed)
            }
            Uniform(nonzeros) => generate::uniform(rows, cols, nonzeros, seed),
            Rule::Communities(nonzeros, (least, most), shuffled) => {
                let communities = Communities {
                    sizes: least..=most,
                    inside: 0.8,
                    shuffled,
                };
                generate::communities(rows, nonzeros, &communities, seed)
            }
            PowerLaw(mean_row, shuffled) => Ok(power_law(rows, mean_row, shuffled, seed)),
            Banded(below, above) => generate::banded(rows, cols, below, above, seed),
            Constant(length) => Ok(constant_rows((rows, cols), length, seed)),
            Grid(side) => Ok(grid(side, seed)),
            Rule::Random(product) => product.generate(seed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_no_kind_is_in_both_sets() {
        for (index, matrix) in all().enumerate() {
            let mut before = all().take(index);
            assert!(
                before.all(|other| other.name != matrix.name),
                "{}",
                matrix.name
            );
            let elsewhere = |other: &Matrix| other.kind == matrix.kind && other.set != matrix.set;
            let is_small = |other: &Matrix| other.set == Set::Emulator;
            assert!(is_small(matrix) || all().all(|other| is_small(other) || !elsewhere(other)));
        }
    }
}
