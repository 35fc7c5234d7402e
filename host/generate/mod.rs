//! Generates matrices for benches and tests: graphs and banded matrices with random values, and dense matrices.
//!
//! A matrix depends only on the arguments, which include the seed, and not on the number of threads: each chunk of work
//! has its own ChaCha8 stream of random numbers.

mod communities;
mod distinct;
mod error;
mod values;

pub use communities::{Communities, communities};
pub use error::GenerateError;
pub use values::dense;

use rand::RngExt;
use sprs::CsMatI;

use crate::scalar::Scalar;
use distinct::{draw_distinct, key, split};
use values::sparse_values;

/// Bytes of memory for each row and each nonzero while a sparse matrix is made, its own included.
const ROW_BYTES: u64 = 32;
const NONZERO_BYTES: u64 = 64;

/// An R-MAT graph: a `rows` x `rows` matrix with exactly `nonzeros` distinct nonzeros, values uniform in [-1, 1).
///
/// To draw a nonzero, the matrix is divided into quadrants again and again until one entry is left. Each time, the
/// upper left, upper right, lower left or lower right quadrant is chosen with the probabilities `[a, b, c, d]`. The
/// side of the divided matrix is the next power of two. Nonzeros outside of `rows` and duplicates are drawn again.
/// Vertices are not renumbered, so with a large `a` the first rows are the longest.
///
/// Source: Chakrabarti, Zhan and Faloutsos, "R-MAT: a recursive model for graph mining", 2004.
///
/// # Errors
///
/// - There are `u32::MAX` rows, or more nonzeros than entries.
/// - The probabilities are not four numbers from 0 to 1 with the sum 1.
/// - `256 * nonzeros + 2^22` draws do not give enough distinct nonzeros.
pub fn rmat<T: Scalar>(
    rows: u32,
    nonzeros: u32,
    probabilities: [f64; 4],
    seed: u64,
) -> Result<CsMatI<T, u32, u32>, GenerateError> {
    check_size(rows, rows, nonzeros.into())?;
    let sum: f64 = probabilities.iter().sum();
    // A NaN is in no range.
    if !probabilities.iter().all(|p| (0.0..=1.0).contains(p)) || (sum - 1.0).abs() > 1e-6 {
        return Err(GenerateError::Probabilities {
            found: probabilities,
        });
    }
    let [a, b, c, _] = probabilities.map(|p| p / sum);
    // A 32-bit random number below the first is in the first quadrant, and so on.
    let thresholds = [a, a + b, a + b + c].map(|p| (p * 2f64.powi(32)) as u64);
    let levels = u64::from(rows).next_power_of_two().trailing_zeros();
    let keys = draw_distinct(nonzeros, seed, |random| {
        let (mut row, mut column) = (0u32, 0u32);
        for _ in 0..levels {
            let number = u64::from(random.random::<u32>());
            let quadrant: u32 = thresholds.iter().map(|&t| u32::from(number >= t)).sum();
            row = row << 1 | quadrant >> 1;
            column = column << 1 | quadrant & 1;
        }
        (row < rows && column < rows).then(|| key(row, column))
    })?;
    Ok(matrix(rows, rows, &keys, seed))
}

/// A `rows` x `columns` matrix with exactly `nonzeros` distinct nonzeros, values uniform in [-1, 1). Every set of that
/// many entries is equally likely.
///
/// # Errors
///
/// There are `u32::MAX` rows, or more nonzeros than entries.
pub fn uniform<T: Scalar>(
    rows: u32,
    columns: u32,
    nonzeros: u32,
    seed: u64,
) -> Result<CsMatI<T, u32, u32>, GenerateError> {
    check_size(rows, columns, nonzeros.into())?;
    let draw = |count| {
        draw_distinct(count, seed, |random| {
            let row = random.random_range(0..rows);
            Some(key(row, random.random_range(0..columns)))
        })
    };
    let entries = u64::from(rows) * u64::from(columns);
    let zeros = entries - u64::from(nonzeros);
    // If most entries are nonzeros, the zeros are drawn: the last free entries would take too many draws.
    let keys = match u32::try_from(zeros) {
        Ok(zeros) if zeros < nonzeros => all_but(rows, columns, &draw(zeros)?),
        _ => draw(nonzeros)?,
    };
    Ok(matrix(rows, columns, &keys, seed))
}

/// A `rows` x `columns` banded matrix, values uniform in [-1, 1). Entry (i, j) is a nonzero if
/// `i - below <= j <= i + above`.
///
/// # Errors
///
/// There are `u32::MAX` rows, or 2^32 nonzeros or more.
pub fn banded<T: Scalar>(
    rows: u32,
    columns: u32,
    below: u32,
    above: u32,
    seed: u64,
) -> Result<CsMatI<T, u32, u32>, GenerateError> {
    let band = |row: u32| {
        let end = (u64::from(row) + u64::from(above) + 1).min(columns.into());
        u64::from(row.saturating_sub(below))..end
    };
    let length = |row| {
        let band = band(row);
        band.end.saturating_sub(band.start)
    };
    let add = |one: u64, other: u64| one + other;
    let nonzeros = parallel::reduce(rows as usize, || 0, |row| length(row as u32), add);
    check_size(rows, columns, nonzeros)?;
    let keys = parallel::flat_map(rows as usize, |row, keys| {
        keys.extend(band(row as u32).map(|column| key(row as u32, column as u32)));
    });
    Ok(matrix(rows, columns, &keys, seed))
}

fn check_size(rows: u32, columns: u32, nonzeros: u64) -> Result<(), GenerateError> {
    if rows == u32::MAX {
        return Err(GenerateError::TooManyRows { found: rows });
    }
    let most = (u64::from(rows) * u64::from(columns)).min(u32::MAX.into());
    if nonzeros > most {
        return Err(GenerateError::TooManyNonzeros {
            rows,
            columns,
            most,
            found: nonzeros,
        });
    }
    let bytes = ROW_BYTES * u64::from(rows) + NONZERO_BYTES * nonzeros;
    check_memory(rows as usize, columns as usize, bytes)
}

/// Checks that the host would give that much memory: a vector that cannot be allocated later ends the process.
fn check_memory(rows: usize, columns: usize, bytes: u64) -> Result<(), GenerateError> {
    let reserve = |bytes| Vec::<u8>::new().try_reserve_exact(bytes).ok();
    let reserved = usize::try_from(bytes).ok().and_then(reserve);
    reserved.ok_or(GenerateError::OutOfMemory {
        rows,
        columns,
        wanted: bytes.into(),
    })
}

/// Every key of the matrix that is not in `absent`, which is sorted.
fn all_but(rows: u32, columns: u32, absent: &[u64]) -> Vec<u64> {
    let mut absent = absent.iter().copied().peekable();
    let all = (0..rows).flat_map(|row| (0..columns).map(move |column| key(row, column)));
    all.filter(|&key| absent.next_if_eq(&key).is_none())
        .collect()
}

/// The matrix with nonzeros at these keys, sorted and distinct.
fn matrix<T: Scalar>(rows: u32, columns: u32, keys: &[u64], seed: u64) -> CsMatI<T, u32, u32> {
    let mut indices = vec![0; keys.len()];
    parallel::fill(&mut indices, |place| split(keys[place]).1);
    let row_pointer = parallel::map(rows as usize + 1, |row| {
        // The casts are exact: there are at most u32::MAX keys.
        keys.partition_point(|&key| split(key).0 < row as u32) as u32
    });
    let data = sparse_values(keys.len(), seed);
    CsMatI::new(
        (rows as usize, columns as usize),
        row_pointer,
        indices,
        data,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKEWED: [f64; 4] = [0.57, 0.19, 0.19, 0.05];

    fn longest_row(a: &CsMatI<f32, u32, u32>) -> usize {
        a.outer_iterator().map(|row| row.nnz()).max().unwrap_or(0)
    }

    fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(work)
    }

    #[test]
    fn nonzeros_are_exactly_as_many_as_asked_for() {
        for rows in [1, 2, 37, 64, 65, 1000] {
            for nonzeros in [0, 1, rows / 2, rows.min(rows * rows)] {
                let a = rmat::<f32>(rows, nonzeros, SKEWED, 7).unwrap();
                assert_eq!(
                    (a.rows(), a.cols(), a.nnz()),
                    (rows as usize, rows as usize, nonzeros as usize)
                );
            }
        }
        // More than one chunk, and many collisions.
        assert_eq!(
            rmat::<f64>(1000, 200_000, SKEWED, 1).unwrap().nnz(),
            200_000
        );
    }

    #[test]
    fn uniform_matrices_may_have_any_number_of_nonzeros() {
        for (rows, columns) in [(0, 0), (0, 3), (3, 0), (1, 1), (7, 3), (3, 300)] {
            for nonzeros in 0..=rows * columns {
                let a = uniform::<f32>(rows, columns, nonzeros, 3).unwrap();
                assert_eq!((a.rows(), a.cols()), (rows as usize, columns as usize));
                assert_eq!(a.nnz(), nonzeros as usize);
            }
        }
        assert_eq!(
            uniform::<f32>(100_000, 100_000, 300_000, 3).unwrap().nnz(),
            300_000
        );
    }

    #[test]
    fn flat_distributions_favour_no_rows_and_no_columns() {
        // The second draws from a square of four times the size, and so in rounds that find more than is missing.
        let uniform = uniform::<f32>(513, 513, 20_000, 11).unwrap();
        let rmat = rmat::<f32>(513, 20_000, [0.25; 4], 11).unwrap();
        for a in [uniform, rmat] {
            let lower = a.iter().filter(|(_, (row, _))| *row >= 257).count();
            let right = a.iter().filter(|(_, (_, column))| *column >= 257).count();
            // Half less 20 are wanted, with a standard deviation of 68.
            assert!(
                lower.abs_diff(9_980) < 300 && right.abs_diff(9_980) < 300,
                "{lower} {right}"
            );
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let graph = || rmat::<f32>(5000, 300_000, SKEWED, 42).unwrap();
        assert!(on_threads(1, graph) == on_threads(5, graph));
        let matrix = || uniform::<f64>(5000, 70, 200_000, 42).unwrap();
        assert!(on_threads(1, matrix) == on_threads(5, matrix));
        let dense = || dense::<f32>(1001, 301, 42).unwrap();
        assert!(on_threads(1, dense) == on_threads(5, dense));
    }

    #[test]
    fn the_seed_changes_the_matrix() {
        let [one, other] = [1, 2].map(|seed| rmat::<f32>(500, 3000, SKEWED, seed).unwrap());
        assert_ne!(one.indices(), other.indices());
        assert_ne!(one.data(), other.data());
        assert_ne!(dense::<f32>(3, 5, 1), dense::<f32>(3, 5, 2));
    }

    #[test]
    fn rmat_is_as_skewed_as_its_probabilities() {
        let (rows, nonzeros) = (1 << 14, 100_000);
        let flat = rmat::<f32>(rows, nonzeros, [0.25; 4], 5).unwrap();
        let skewed = rmat::<f32>(rows, nonzeros, SKEWED, 5).unwrap();
        // Six nonzeros a row; the first row of the skewed graph has 0.76^14 of all before duplicates are drawn again.
        assert!(longest_row(&flat) < 30, "{}", longest_row(&flat));
        assert!(longest_row(&skewed) > 500, "{}", longest_row(&skewed));
        assert_eq!(skewed.outer_view(0).unwrap().nnz(), longest_row(&skewed));

        let quarter = |a: &CsMatI<f32, u32, u32>, lower: bool, right: bool| {
            let half = rows / 2;
            let inside = a
                .iter()
                .filter(|(_, (row, column))| (*row >= half) == lower && (*column >= half) == right);
            inside.count() as f64 / f64::from(nonzeros)
        };
        let graph = rmat::<f32>(rows, nonzeros, [0.4, 0.3, 0.2, 0.1], 5).unwrap();
        for (probability, lower, right) in [
            (0.4, false, false),
            (0.3, false, true),
            (0.2, true, false),
            (0.1, true, true),
        ] {
            let found = quarter(&graph, lower, right);
            assert!(
                (found - probability).abs() < 0.01,
                "{found} instead of {probability}"
            );
        }
    }

    #[test]
    fn banded_matrices_have_their_band_and_nothing_else() {
        for (rows, columns, below, above) in [
            (5, 5, 1, 2),
            (3, 7, 0, 0),
            (7, 3, 1, 0),
            (4, 4, 9, 9),
            (0, 3, 1, 1),
            (3, 0, 1, 1),
        ] {
            let a = banded::<f32>(rows, columns, below, above, 1).unwrap();
            for row in 0..rows {
                let wanted: Vec<u32> = (0..columns)
                    .filter(|&column| column + below >= row && column <= row + above)
                    .collect();
                assert_eq!(a.outer_view(row as usize).unwrap().indices(), wanted);
            }
        }
        assert_eq!(
            banded::<f32>(1000, 1000, 13, 13, 1).unwrap().nnz(),
            27 * 1000 - 2 * (13 * 14 / 2)
        );
    }

    #[test]
    fn values_are_in_range_and_spread_over_it() {
        let a = uniform::<f64>(300, 300, 40_000, 9).unwrap();
        let x = dense::<f64>(200, 200, 9).unwrap();
        for values in [a.data(), x.as_slice().unwrap()] {
            assert!(values.iter().all(|value| (-1.0..1.0).contains(value)));
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let square =
                values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64;
            assert!(
                mean.abs() < 0.02 && (square - 1.0 / 3.0).abs() < 0.02,
                "{mean} {square}"
            );
        }
        assert_ne!(a.data()[..100], x.as_slice().unwrap()[..100]);
    }

    #[test]
    fn a_dense_matrix_that_no_host_can_hold_is_an_error_with_the_bytes() {
        for (rows, columns) in [(1 << 40, 1 << 30), (1 << 30, 1 << 29), (3, 1 << 59)] {
            let error = dense::<f64>(rows, columns, 1).unwrap_err();
            let wanted = 8 * rows as u128 * columns as u128;
            assert!(
                matches!(error, GenerateError::OutOfMemory { wanted: found, .. } if found == wanted),
                "{error}"
            );
            assert!(error.to_string().contains(&wanted.to_string()), "{error}");
        }
        assert!(dense::<f64>(usize::MAX, usize::MAX, 1).is_err());
        for (rows, columns) in [(0, usize::MAX), (usize::MAX, 0)] {
            assert_eq!(
                dense::<f32>(rows, columns, 1),
                Err(GenerateError::DenseShape { rows, columns })
            );
        }
        assert_eq!(dense::<f32>(0, 7, 1).unwrap().dim(), (0, 7));
        assert!(matches!(
            check_memory(3, 5, 1 << 62),
            Err(GenerateError::OutOfMemory { rows: 3, columns: 5, wanted }) if wanted == 1 << 62
        ));
    }

    #[test]
    fn what_cannot_be_generated_is_an_error() {
        let too_many = GenerateError::TooManyNonzeros {
            rows: 3,
            columns: 3,
            most: 9,
            found: 10,
        };
        assert_eq!(rmat::<f32>(3, 10, SKEWED, 1), Err(too_many.clone()));
        assert_eq!(uniform::<f32>(3, 3, 10, 1), Err(too_many));
        assert!(matches!(
            uniform::<f32>(u32::MAX, 1, 0, 1),
            Err(GenerateError::TooManyRows { .. })
        ));
        assert!(matches!(
            banded::<f32>(100_000, 100_000, 99_999, 99_999, 1),
            Err(GenerateError::TooManyNonzeros { .. })
        ));
        for wrong in [[0.5; 4], [f64::NAN, 0.5, 0.25, 0.25], [1.5, -0.5, 0.0, 0.0]] {
            assert!(matches!(
                rmat::<f32>(3, 1, wrong, 1),
                Err(GenerateError::Probabilities { .. })
            ));
        }
        // One entry alone can be drawn, then none: the last vertex of the next power of two.
        assert!(matches!(
            rmat::<f32>(4, 2, [1.0, 0.0, 0.0, 0.0], 1),
            Err(GenerateError::TooSkewed { found: 1, .. })
        ));
        assert!(matches!(
            rmat::<f32>(3, 1, [0.0, 0.0, 0.0, 1.0], 1),
            Err(GenerateError::TooSkewed { found: 0, .. })
        ));
    }
}
