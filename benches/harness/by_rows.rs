//! Matrices by a rule for the columns of each row: power-law communities, rows of one length, grids, a band with holes.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use warprow::{CsrMatrix, Scalar};

/// The matrix whose row `i` has the columns that `columns` adds to its list, each once.
pub fn by_rows<T: Scalar>(
    shape: (u32, u32),
    seed: u64,
    columns: impl Fn(u32, &mut ChaCha8Rng, &mut Vec<u32>) + Sync,
) -> CsrMatrix<T> {
    let rows: Vec<Vec<u32>> = parallel::map(shape.0 as usize, |row| {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ ((row as u64) << 20));
        let mut list = Vec::new();
        columns(row as u32, &mut random, &mut list);
        list.sort_unstable();
        list.dedup();
        list
    });
    let mut row_ptr = vec![0];
    for row in &rows {
        row_ptr.push(row_ptr[row_ptr.len() - 1] + row.len() as u32);
    }
    let value = |index: usize| T::from_f64(((index * 37) % 101) as f64 / 50.0 - 1.0);
    let col_idx = rows.concat();
    let mut values = vec![T::ONE; col_idx.len()];
    parallel::fill(&mut values, value);
    CsrMatrix::new(
        (shape.0 as usize, shape.1 as usize),
        row_ptr,
        col_idx,
        values,
    )
}

/// Rows of `length` columns at random.
pub fn constant_rows<T: Scalar>(shape: (u32, u32), length: u32, seed: u64) -> CsrMatrix<T> {
    by_rows(shape, seed, |_, random, list| {
        list.extend((0..length).map(|_| random.random_range(0..shape.1)));
    })
}

/// A grid of `side` times `side` points, each with itself and its four neighbours.
pub fn grid<T: Scalar>(side: u32, seed: u64) -> CsrMatrix<T> {
    let points = side * side;
    by_rows((points, points), seed, |point, _, list| {
        list.push(point);
        neighbours(point, &[1, side, points], list);
    })
}

/// A cube of `side` times `side` times `side` points, each with itself and its six neighbours.
pub fn cube<T: Scalar>(side: u32, seed: u64) -> CsrMatrix<T> {
    let points = side * side * side;
    by_rows((points, points), seed, |point, _, list| {
        list.push(point);
        neighbours(point, &[1, side, side * side, points], list);
    })
}

/// Both neighbours of a point along each axis; `strides` has the distance of neighbours on each axis, and last the
/// number of points.
fn neighbours(point: u32, strides: &[u32], list: &mut Vec<u32>) {
    for axis in strides.windows(2) {
        let (stride, line) = (axis[0], axis[1]);
        list.extend((point % line >= stride).then(|| point - stride));
        list.extend((point % line + stride < line).then(|| point + stride));
    }
}

/// A square band that reaches `reach` columns to both sides of the diagonal, with about `length` columns at random in
/// each row.
pub fn band_with_holes<T: Scalar>(rows: u32, reach: u32, length: u32, seed: u64) -> CsrMatrix<T> {
    by_rows((rows, rows), seed, |row, random, list| {
        let band = row.saturating_sub(reach)..(row + reach + 1).min(rows);
        list.extend((0..length).map(|_| random.random_range(band.clone())));
    })
}

/// The share of the nonzeros inside a community.
const INSIDE: f64 = 0.8;

/// The least size of a community; sizes have the distribution `P(size > s) = (MIN_SIZE / s)^EXPONENT`.
const MIN_SIZE: f64 = 40.0;
const EXPONENT: f64 = 1.2;

/// Communities whose sizes, and rows whose lengths follow power laws. Inside a community columns crowd at its start.
pub fn power_law<T: Scalar>(rows: u32, mean_row: u32, shuffled: bool, seed: u64) -> CsrMatrix<T> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut starts = vec![0];
    let mut of_row = Vec::with_capacity(rows as usize);
    while (of_row.len() as u32) < rows {
        let start = of_row.len() as u32;
        let size = MIN_SIZE * random.random_range(1e-4_f64..1.0).powf(-1.0 / EXPONENT);
        let size = (size as u32).min(rows / 8).min(rows - start).max(1);
        of_row.extend((0..size).map(|_| starts.len() as u32 - 1));
        starts.push(start + size);
    }
    let mut number: Vec<u32> = (0..rows).collect();
    if shuffled {
        for last in (1..rows as usize).rev() {
            number.swap(last, random.random_range(0..=last));
        }
    }
    let mut vertex = vec![0; rows as usize];
    for (of, &to) in number.iter().enumerate() {
        vertex[to as usize] = of as u32;
    }
    by_rows((rows, rows), seed, |row, random, list| {
        let community = of_row[vertex[row as usize] as usize] as usize;
        let (first, end) = (starts[community], starts[community + 1]);
        // The mean of u^-0.5 - 0.5 is 1.5 for u uniform in (0, 1).
        let factor = (random.random_range(1e-4_f64..1.0).powf(-0.5) - 0.5) / 1.5;
        let length = (f64::from(mean_row) * factor).round().max(1.0) as u32;
        for _ in 0..length {
            let inside = random.random_range(0.0..1.0) < INSIDE;
            let of = if inside {
                let place = random.random_range(0.0_f64..1.0).powf(1.5);
                first + (place * f64::from(end - first)) as u32
            } else {
                random.random_range(0..rows)
            };
            list.push(number[of as usize]);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_law_communities_have_about_the_mean_row_and_no_repeated_column() {
        for shuffled in [false, true] {
            let a = power_law::<f32>(4000, 10, shuffled, 1);
            assert_eq!((a.rows(), a.cols()), (4000, 4000));
            assert!((20_000..50_000).contains(&a.nnz()), "{}", a.nnz());
        }
        let [one, two] = [1, 1].map(|seed| power_law::<f32>(500, 8, true, seed));
        assert!(one == two, "the same seed gives the same matrix");
    }

    #[test]
    fn a_grid_has_five_nonzeros_in_the_rows_inside() {
        let a = grid::<f32>(4, 1);
        assert_eq!(a.nnz(), 16 * 5 - 4 * 4);
        assert_eq!(a.outer_view(5).unwrap().indices(), [1, 4, 5, 6, 9]);
    }

    #[test]
    fn a_cube_has_seven_nonzeros_in_the_rows_inside() {
        let a = cube::<f64>(3, 1);
        assert_eq!(a.nnz(), 27 * 7 - 6 * 9);
        let inside = a.outer_view(13).unwrap();
        assert_eq!(inside.indices(), [4, 10, 12, 13, 14, 16, 22]);
    }

    #[test]
    fn a_band_with_holes_stays_within_its_reach() {
        let a = band_with_holes::<f32>(300, 20, 9, 1);
        for (_, (row, column)) in a.iter() {
            assert!(row.abs_diff(column) <= 20);
        }
        assert!((1500..2700).contains(&a.nnz()), "{}", a.nnz());
    }
}
