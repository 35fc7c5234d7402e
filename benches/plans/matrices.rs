//! The matrices, and the split into those for fitting and those for validation. Both kinds and sizes differ between
//! the sets. The split was made before any of them was measured.

use crate::harness::by_rows::{constant_rows, grid, power_law};
use clap::ValueEnum;
use serde::Serialize;
use sprs::CsMatI;
use warprow::generate::{self, Communities, GenerateError};

/// What a matrix is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Set {
    /// The constants of the cost model are fitted to these.
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
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Matrix {
    /// Its name.
    #[serde(rename = "matrix")]
    pub name: &'static str,
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
}

use Rule::{Banded, Constant, Grid, PowerLaw, Rmat, Uniform};
use Set::{Emulator, Fitting, Validation};

const fn square(name: &'static str, set: Set, kind: &'static str, rows: u32, rule: Rule) -> Matrix {
    rectangular(name, set, kind, (rows, rows), rule)
}

const fn rectangular(
    name: &'static str,
    set: Set,
    kind: &'static str,
    (rows, cols): (u32, u32),
    rule: Rule,
) -> Matrix {
    Matrix {
        name,
        set,
        kind,
        rows,
        cols,
        rule,
    }
}

const R57: [u8; 4] = [57, 19, 19, 5];
const R45: [u8; 4] = [45, 22, 22, 11];
const R35: [u8; 4] = [35, 22, 22, 21];

/// All matrices. Validation and fitting take turns, so that a run that is cut off has some of both.
pub const MATRICES: &[Matrix] = &[
    square("small", Emulator, "rmat57", 300, Rmat(3_000, R57)),
    square(
        "rmat57_150k_2m",
        Fitting,
        "rmat57",
        150_000,
        Rmat(2_000_000, R57),
    ),
    square(
        "power_law_300k_13",
        Validation,
        "power_law",
        300_000,
        PowerLaw(13, false),
    ),
    square(
        "rmat57_1m_10m",
        Fitting,
        "rmat57",
        1_000_000,
        Rmat(10_000_000, R57),
    ),
    square(
        "power_law_300k_13_shuffled",
        Validation,
        "power_law_shuffled",
        300_000,
        PowerLaw(13, true),
    ),
    square(
        "rmat57_50k_10m",
        Fitting,
        "rmat57",
        50_000,
        Rmat(10_000_000, R57),
    ),
    square(
        "banded_500k_16",
        Validation,
        "banded",
        500_000,
        Banded(8, 7),
    ),
    square(
        "rmat35_300k_3m",
        Fitting,
        "rmat35",
        300_000,
        Rmat(3_000_000, R35),
    ),
    rectangular(
        "uniform_63k_x_63k_4",
        Validation,
        "rectangular",
        (63_436, 63_436),
        Uniform(253_744),
    ),
    square(
        "rmat35_800k_24m",
        Fitting,
        "rmat35",
        800_000,
        Rmat(24_000_000, R35),
    ),
    rectangular(
        "uniform_200k_x_1m_40",
        Validation,
        "rectangular",
        (200_000, 1_000_000),
        Uniform(8_000_000),
    ),
    square(
        "rmat35_100k_15m",
        Fitting,
        "rmat35",
        100_000,
        Rmat(15_000_000, R35),
    ),
    square(
        "rmat45_500k_5m",
        Validation,
        "rmat45",
        500_000,
        Rmat(5_000_000, R45),
    ),
    square(
        "uniform_200k_1m",
        Fitting,
        "uniform",
        200_000,
        Uniform(1_200_000),
    ),
    square(
        "rows_of_400_20k",
        Validation,
        "rows_of_400",
        20_000,
        Constant(400),
    ),
    square(
        "uniform_1m_12m",
        Fitting,
        "uniform",
        1_000_000,
        Uniform(12_000_000),
    ),
    square(
        "rmat57_700k_28m",
        Validation,
        "rmat57_other",
        700_000,
        Rmat(28_000_000, R57),
    ),
    square(
        "uniform_60k_12m",
        Fitting,
        "uniform",
        60_000,
        Uniform(12_000_000),
    ),
    square(
        "power_law_100k_100",
        Validation,
        "power_law",
        100_000,
        PowerLaw(100, false),
    ),
    square(
        "uniform_8k_4m",
        Fitting,
        "uniform",
        8_000,
        Uniform(4_000_000),
    ),
    square(
        "power_law_100k_100_shuffled",
        Validation,
        "power_law_shuffled",
        100_000,
        PowerLaw(100, true),
    ),
    square(
        "communities_400k_6m",
        Fitting,
        "communities",
        400_000,
        Rule::Communities(6_000_000, (64, 2_048), false),
    ),
    square(
        "banded_100k_128",
        Validation,
        "banded",
        100_000,
        Banded(64, 63),
    ),
    square(
        "communities_150k_12m",
        Fitting,
        "communities",
        150_000,
        Rule::Communities(12_000_000, (160, 5_120), false),
    ),
    square(
        "rmat45_120k_9m",
        Validation,
        "rmat45",
        120_000,
        Rmat(9_600_000, R45),
    ),
    square(
        "communities_400k_6m_shuffled",
        Fitting,
        "communities_shuffled",
        400_000,
        Rule::Communities(6_000_000, (64, 2_048), true),
    ),
    rectangular(
        "rows_of_400_30k_x_400k",
        Validation,
        "rows_of_400",
        (30_000, 400_000),
        Constant(400),
    ),
    square(
        "communities_150k_12m_shuffled",
        Fitting,
        "communities_shuffled",
        150_000,
        Rule::Communities(12_000_000, (160, 5_120), true),
    ),
    rectangular(
        "uniform_1m_x_50k_8",
        Validation,
        "rectangular",
        (1_000_000, 50_000),
        Uniform(8_000_000),
    ),
    square("grid_1000", Fitting, "grid", 1_000_000, Grid(1_000)),
    square(
        "power_law_1m_10",
        Validation,
        "power_law",
        1_000_000,
        PowerLaw(10, false),
    ),
    square(
        "communities_1m_9m_shuffled",
        Fitting,
        "communities_shuffled",
        1_100_000,
        Rule::Communities(9_000_000, (64, 2_048), true),
    ),
    square(
        "power_law_1m_10_shuffled",
        Validation,
        "power_law_shuffled",
        1_000_000,
        PowerLaw(10, true),
    ),
    square(
        "rmat57_2m_16m",
        Fitting,
        "rmat57",
        2_500_000,
        Rmat(16_000_000, R57),
    ),
    square(
        "rmat57_90k_700k",
        Validation,
        "rmat57_other",
        90_000,
        Rmat(700_000, R57),
    ),
    square(
        "rmat57_34k_500k",
        Fitting,
        "rmat57",
        34_000,
        Rmat(500_000, R57),
    ),
    square(
        "power_law_20k_15",
        Validation,
        "power_law",
        20_000,
        PowerLaw(15, false),
    ),
    square(
        "uniform_8k_240k",
        Fitting,
        "uniform",
        7_700,
        Uniform(240_000),
    ),
    square("banded_30k_14", Validation, "banded", 30_000, Banded(7, 6)),
    square(
        "communities_90k_900k",
        Fitting,
        "communities",
        90_000,
        Rule::Communities(900_000, (32, 1_024), false),
    ),
    square(
        "rmat45_60k_400k",
        Validation,
        "rmat45",
        60_000,
        Rmat(400_000, R45),
    ),
    square(
        "uniform_40k_16m",
        Fitting,
        "uniform",
        40_000,
        Uniform(16_000_000),
    ),
];

impl Matrix {
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_no_kind_is_in_both_sets() {
        for (index, matrix) in MATRICES.iter().enumerate() {
            assert!(
                MATRICES[..index]
                    .iter()
                    .all(|other| other.name != matrix.name),
                "{}",
                matrix.name
            );
            let elsewhere = |other: &Matrix| other.kind == matrix.kind && other.set != matrix.set;
            let is_small = |other: &Matrix| other.set == Emulator;
            assert!(
                is_small(matrix)
                    || MATRICES
                        .iter()
                        .all(|other| is_small(other) || !elsewhere(other))
            );
        }
    }
}
