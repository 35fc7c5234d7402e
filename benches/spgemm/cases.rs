//! The matrices.

use crate::harness::by_rows::{band_with_holes, constant_rows, cube, grid, power_law};
use sprs::CsMatI;
use warprow::generate::{self, Communities, GenerateError};
use warprow::matrix_market::parse_matrix_market;
use warprow::{CsrMatrix, Scalar};

/// A matrix of the bench.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// How its nonzeros are distributed.
    pub kind: Kind,
    /// Rows and columns.
    pub rows: u32,
    /// Nonzeros; of bands, blocks and power laws, and of rows of one length, those of a row.
    pub nonzeros: u32,
}

/// How the nonzeros of a matrix are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// R-MAT with the probabilities .57, .19, .19, .05: a few very long rows.
    Rmat57,
    /// R-MAT with .45, .22, .22, .11: between the two others.
    Rmat45,
    /// R-MAT with .35, .22, .22, .21: a mild skew.
    Rmat35,
    /// Each entry as likely as the other.
    Uniform,
    /// Neighbouring diagonals.
    Banded,
    /// Diagonals of a cube's grid, each point with its 26 neighbours.
    Stencil,
    /// Dense blocks on the diagonal.
    Blocks,
    /// Planted communities, in the order of which rows and columns are numbered.
    Communities,
    /// The same, numbered at random.
    CommunitiesShuffled,
    /// Uniform, three nonzeros a row, and one row of that many.
    LongRow(u32),
    /// The dependencies of Debian's packages.
    Packages,
    /// Communities whose sizes, and rows whose lengths follow power laws.
    PowerLaw,
    /// The same, numbered at random.
    PowerLawShuffled,
    /// At random within a band that reaches that many columns to both sides.
    BandWithHoles(u32),
    /// Points of a square, each with its 4 neighbours.
    Grid,
    /// Points of a cube, each with its 6 neighbours.
    Cube,
    /// Rows of one length, in that many columns.
    ConstantRows(u32),
}

const fn case(name: &'static str, kind: Kind, rows: u32, nonzeros: u32) -> Case {
    Case {
        name,
        kind,
        rows,
        nonzeros,
    }
}

/// All matrices; `small` is for the emulator.
pub const CASES: &[Case] = &[
    case("small", Kind::Rmat57, 503, 4_011),
    case("rmat57_100k", Kind::Rmat57, 100_000, 1_000_000),
    case("rmat57_282k", Kind::Rmat57, 281_903, 2_312_497),
    case("arxiv", Kind::Rmat35, 169_343, 1_166_243),
    case("collab", Kind::Rmat35, 235_868, 2_358_104),
    case("youtube", Kind::Rmat35, 1_138_499, 5_980_886),
    case("rmat45_500k", Kind::Rmat45, 500_000, 5_000_000),
    case("uniform", Kind::Uniform, 1_000_000, 5_000_000),
    case("uniform_short", Kind::Uniform, 2_000_000, 4_000_000),
    case("banded", Kind::Banded, 1_000_000, 27),
    case("stencil", Kind::Stencil, 1_000_000, 27),
    case("blocks", Kind::Blocks, 640_000, 64),
    case("communities", Kind::Communities, 200_000, 8_000_000),
    case(
        "communities_shuffled",
        Kind::CommunitiesShuffled,
        200_000,
        8_000_000,
    ),
    case("long_row_12k", Kind::LongRow(5_000), 1_000_000, 3_000_000),
    case("long_row_200k", Kind::LongRow(80_000), 1_000_000, 3_000_000),
    case("packages", Kind::Packages, 0, 0),
];

/// The generated matrices to which nothing was tuned, stated before they were measured. With a real one from a file,
/// `words_packages`, they are twelve.
pub const VALIDATION: &[Case] = &[
    case("rmat45_500k", Kind::Rmat45, 500_000, 5_000_000),
    case("rmat45_2m_6m", Kind::Rmat45, 2_000_000, 6_000_000),
    case("uniform_3m_2", Kind::Uniform, 3_000_000, 6_000_000),
    case("uniform_800k_5", Kind::Uniform, 800_000, 4_000_000),
    case("uniform_400k_12", Kind::Uniform, 400_000, 4_800_000),
    case("power_law_300k_13", Kind::PowerLaw, 300_000, 13),
    case("power_law_60k_50", Kind::PowerLawShuffled, 60_000, 50),
    case("band_400k_30", Kind::BandWithHoles(400), 400_000, 30),
    case("grid_1500", Kind::Grid, 1_500 * 1_500, 5),
    case("cube_120", Kind::Cube, 120 * 120 * 120, 7),
    case("rows_of_400_12k", Kind::ConstantRows(100_000), 12_000, 400),
];

const PACKAGES: (&str, &[u8]) = (
    "data/debian-bookworm-depends.mtx.gz",
    include_bytes!("../data/debian-bookworm-depends.mtx.gz"),
);

impl Case {
    /// The matrix of that name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = CASES.iter().chain(VALIDATION).copied();
        all.find(|case| case.name == name)
    }

    /// The word for the distribution in the results.
    pub const fn kind_name(self) -> &'static str {
        match self.kind {
            Kind::Rmat57 => "rmat57",
            Kind::Rmat45 => "rmat45",
            Kind::Rmat35 => "rmat35",
            Kind::Uniform => "uniform",
            Kind::Banded => "banded",
            Kind::Stencil => "stencil",
            Kind::Blocks => "blocks",
            Kind::Communities => "communities",
            Kind::CommunitiesShuffled => "communities_shuffled",
            Kind::LongRow(_) => "long_row",
            Kind::Packages => "packages",
            Kind::PowerLaw => "power_law",
            Kind::PowerLawShuffled => "power_law_shuffled",
            Kind::BandWithHoles(_) => "band_with_holes",
            Kind::Grid => "grid",
            Kind::Cube => "cube",
            Kind::ConstantRows(_) => "constant_rows",
        }
    }

    /// The matrix; the same for the same seed.
    ///
    /// # Errors
    ///
    /// A matrix that cannot be generated or read.
    pub fn generate<T: Scalar>(self, seed: u64) -> Result<CsrMatrix<T>, warprow::Error> {
        let Self { rows, nonzeros, .. } = self;
        Ok(match self.kind {
            Kind::Rmat57 => generate::rmat(rows, nonzeros, [0.57, 0.19, 0.19, 0.05], seed)?,
            Kind::Rmat45 => generate::rmat(rows, nonzeros, [0.45, 0.22, 0.22, 0.11], seed)?,
            Kind::Rmat35 => generate::rmat(rows, nonzeros, [0.35, 0.22, 0.22, 0.21], seed)?,
            Kind::Uniform => generate::uniform(rows, rows, nonzeros, seed)?,
            Kind::Banded => generate::banded(rows, rows, nonzeros / 2, nonzeros / 2, seed)?,
            Kind::Stencil => with_values(rows, stencil(rows), seed)?,
            Kind::Blocks => with_values(
                rows,
                move |row, columns| {
                    let block = row / nonzeros * nonzeros;
                    columns.extend(block..(block + nonzeros).min(rows));
                },
                seed,
            )?,
            Kind::Communities => generate::communities(rows, nonzeros, &communities(false), seed)?,
            Kind::CommunitiesShuffled => {
                generate::communities(rows, nonzeros, &communities(true), seed)?
            }
            Kind::LongRow(length) => long_row(rows, nonzeros, length, seed)?,
            Kind::Packages => parse_matrix_market(PACKAGES.1, PACKAGES.0)?,
            Kind::PowerLaw => power_law(rows, nonzeros, false, seed),
            Kind::PowerLawShuffled => power_law(rows, nonzeros, true, seed),
            Kind::BandWithHoles(reach) => band_with_holes(rows, reach, nonzeros, seed),
            Kind::Grid => grid(rows.isqrt(), seed),
            Kind::Cube => cube(f64::from(rows).cbrt().round() as u32, seed),
            Kind::ConstantRows(columns) => constant_rows((rows, columns), nonzeros, seed),
        })
    }
}

/// Twice as many rows as a row of the table's communities has nonzeros, and up to 32 times that.
fn communities(shuffled: bool) -> Communities {
    Communities {
        sizes: 80..=2560,
        inside: 0.8,
        shuffled,
    }
}

/// The neighbours of a point in a cube of that many points.
fn stencil(points: u32) -> impl Fn(u32, &mut Vec<u32>) {
    let side = f64::from(points).cbrt().round() as u32;
    move |row, columns| {
        let near = |at: u32| at.saturating_sub(1)..(at + 2).min(side);
        let (x, y, z) = (row % side, row / side % side, row / side / side);
        for z in near(z) {
            for y in near(y) {
                columns.extend(near(x).map(|x| (z * side + y) * side + x));
            }
        }
    }
}

/// A square matrix with the columns that `row` gives, ascending, and random values.
fn with_values<T: Scalar>(
    rows: u32,
    row: impl Fn(u32, &mut Vec<u32>),
    seed: u64,
) -> Result<CsrMatrix<T>, GenerateError> {
    let (mut row_ptr, mut columns) = (vec![0], Vec::new());
    for index in 0..rows {
        row(index, &mut columns);
        row_ptr.push(columns.len() as u32);
    }
    let values = generate::dense::<T>(columns.len(), 1, seed)?;
    let (values, _) = values.into_raw_vec_and_offset();
    let shape = (rows as usize, rows as usize);
    Ok(CsMatI::new(shape, row_ptr, columns, values))
}

/// A uniform matrix whose first row has `length` nonzeros, evenly apart.
fn long_row<T: Scalar>(
    rows: u32,
    nonzeros: u32,
    length: u32,
    seed: u64,
) -> Result<CsrMatrix<T>, GenerateError> {
    let rest = generate::uniform::<T>(rows, rows, nonzeros, seed)?;
    with_values(
        rows,
        |row, columns| {
            if row == 0 {
                columns.extend((0..length).map(|k| k * (rows / length)));
            } else if let Some(row) = rest.outer_view(row as usize) {
                columns.extend(row.indices());
            }
        },
        seed,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_unique() {
        for case in CASES {
            assert_eq!(Case::named(case.name), Some(*case));
        }
    }

    #[test]
    fn a_name_is_of_one_matrix_in_both_tables() {
        for case in VALIDATION {
            assert_eq!(Case::named(case.name), Some(*case));
        }
    }

    #[test]
    fn every_kind_generates_a_matrix_of_its_size() {
        let small = |kind, rows, nonzeros| {
            let a = case("", kind, rows, nonzeros).generate::<f32>(1).unwrap();
            assert_eq!((a.rows(), a.cols()), (rows as usize, rows as usize));
            a
        };
        assert_eq!(small(Kind::Rmat57, 100, 300).nnz(), 300);
        assert_eq!(small(Kind::Uniform, 100, 300).nnz(), 300);
        assert_eq!(
            small(Kind::Banded, 100, 27).outer_view(50).unwrap().nnz(),
            27
        );
        for kind in [Kind::Communities, Kind::CommunitiesShuffled] {
            assert_eq!(small(kind, 6000, 9000).nnz(), 9000);
        }
        let stencil = small(Kind::Stencil, 125, 27);
        assert_eq!(stencil.outer_view(62).unwrap().nnz(), 27);
        assert_eq!(stencil.outer_view(0).unwrap().nnz(), 8);
        let blocks = small(Kind::Blocks, 100, 8);
        assert_eq!(blocks.outer_view(99).unwrap().indices(), [96, 97, 98, 99]);
        assert_eq!(
            small(Kind::LongRow(40), 100, 300)
                .outer_view(0)
                .unwrap()
                .nnz(),
            40
        );
        assert_eq!(small(Kind::Grid, 25, 5).outer_view(12).unwrap().nnz(), 5);
        assert_eq!(small(Kind::Cube, 27, 7).outer_view(13).unwrap().nnz(), 7);
        for kind in [
            Kind::PowerLaw,
            Kind::PowerLawShuffled,
            Kind::BandWithHoles(30),
            Kind::ConstantRows(500),
        ] {
            let longest = small(kind, 500, 9)
                .outer_iterator()
                .map(|row| row.nnz())
                .max();
            assert!(longest >= Some(8), "{kind:?}");
        }
        assert!(
            Case::named("packages")
                .unwrap()
                .generate::<f32>(1)
                .unwrap()
                .nnz()
                > 0
        );
    }
}
