//! The matrices.

use super::Matrix;
use super::Rule::{self, Banded, Constant, Grid, PowerLaw, Rmat, Uniform};
use super::Set::{self, Emulator, Fitting, Validation};
use std::borrow::Cow;

const fn square(name: &'static str, set: Set, kind: &'static str, rows: u32, rule: Rule) -> Matrix {
    rectangular(name, set, kind, (rows, rows), rule)
}

pub(super) const fn rectangular(
    name: &'static str,
    set: Set,
    kind: &'static str,
    (rows, cols): (u32, u32),
    rule: Rule,
) -> Matrix {
    Matrix {
        name: Cow::Borrowed(name),
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
    square(
        "uniform_1m_40m",
        Fitting,
        "uniform",
        1_000_000,
        Uniform(40_000_000),
    ),
];
