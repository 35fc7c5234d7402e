//! Matrices of a few thousand rows, such as pruned layers of neural networks have.

use super::Matrix;
use super::Rule::{Banded, Constant, Uniform};
use super::Set::{Fitting, Validation};
use super::list::rectangular;

/// Those for fitting and for validation alternate. The times of a batch of the longest row of `row_bins` are from those
/// for fitting; `scripts/fit-spmm-plan` fits no time of a product to them.
pub const FEW_ROWS: &[Matrix] = &[
    rectangular(
        "few_rows_1k_x_1k_210k",
        Fitting,
        "few_rows",
        (1_024, 1_024),
        Uniform(209_715),
    ),
    rectangular(
        "few_even_rows_1k_x_2k_400k",
        Validation,
        "few_even_rows",
        (1_000, 2_000),
        Constant(400),
    ),
    rectangular(
        "few_rows_768_x_3k_236k",
        Fitting,
        "few_rows",
        (768, 3_072),
        Uniform(235_930),
    ),
    rectangular(
        "few_even_rows_4k_x_9k_440k",
        Validation,
        "few_even_rows",
        (4_200, 9_000),
        Constant(104),
    ),
    rectangular(
        "few_rows_2k_x_512_105k",
        Fitting,
        "few_rows",
        (2_048, 512),
        Uniform(104_858),
    ),
    rectangular(
        "few_even_rows_1k_x_400k_200k",
        Validation,
        "few_even_rows",
        (1_000, 400_000),
        Constant(200),
    ),
    rectangular(
        "few_rows_4k_x_1k_420k",
        Fitting,
        "few_rows",
        (4_096, 1_024),
        Uniform(419_430),
    ),
    rectangular(
        "few_even_rows_6k_x_1k_384k",
        Validation,
        "few_even_rows",
        (6_000, 1_000),
        Constant(64),
    ),
    rectangular(
        "few_rows_2k_x_2k_420k",
        Fitting,
        "few_rows",
        (2_048, 2_048),
        Uniform(419_430),
    ),
    rectangular(
        "few_banded_rows_2k_480k",
        Validation,
        "few_banded_rows",
        (2_400, 2_400),
        Banded(100, 99),
    ),
    rectangular(
        "few_rows_4k_x_4k_336k",
        Fitting,
        "few_rows",
        (4_096, 4_096),
        Uniform(335_544),
    ),
    rectangular(
        "few_banded_rows_8k_840k",
        Validation,
        "few_banded_rows",
        (8_000, 8_000),
        Banded(52, 52),
    ),
    rectangular(
        "few_rows_3k_x_768_472k",
        Fitting,
        "few_rows",
        (3_072, 768),
        Uniform(471_859),
    ),
    rectangular(
        "few_banded_rows_1k_360k",
        Validation,
        "few_banded_rows",
        (900, 900),
        Banded(200, 199),
    ),
    rectangular(
        "few_rows_2k_x_300k_230k",
        Fitting,
        "few_rows",
        (2_300, 300_000),
        Uniform(230_000),
    ),
];
