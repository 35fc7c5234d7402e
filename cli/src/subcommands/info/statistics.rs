//! Numbers that tell what a matrix is like.

use std::thread::available_parallelism;
use warprow::CsrMatrix;

/// Rows that locality is measured in.
const WINDOW: usize = 64;

/// Products of A x A up to which its entries are counted: some seconds.
const MOST_PRODUCTS: u64 = 1 << 32;

/// What a matrix is like.
pub struct Statistics {
    pub shape: (usize, usize),
    pub nonzeros: usize,
    pub stored_zeros: usize,
    pub rows: Lengths,
    pub columns: Lengths,
    /// Of a square matrix.
    pub symmetry: Option<Symmetry>,
    pub bandwidth: Bandwidth,
    /// Distinct columns per nonzero in 64 consecutive rows, the mean over all nonzeros.
    pub locality: f64,
    /// Of a square matrix.
    pub square: Option<Square>,
}

/// The lengths of rows or columns.
pub struct Lengths {
    pub count: usize,
    pub least: usize,
    pub median: usize,
    pub mean: f64,
    pub percentile_99: usize,
    pub most: usize,
    pub empty: usize,
    /// In powers of two.
    pub histogram: Vec<Bin>,
}

/// Rows or columns of similar length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    pub least: usize,
    pub most: usize,
    pub count: usize,
}

/// The parts of the nonzeros off the diagonal that have a counterpart on its other side; 1 if there are none.
pub struct Symmetry {
    pub structure: f64,
    /// With the same value.
    pub values: f64,
}

/// How far nonzeros are from the diagonal.
pub struct Bandwidth {
    pub below: usize,
    pub above: usize,
    pub mean_distance: f64,
    pub on_diagonal: usize,
}

/// The product of the matrix with itself.
pub struct Square {
    pub products: u64,
    /// Unless there are too many products.
    pub entries: Option<u64>,
}

impl Statistics {
    /// An upper bound of the bytes that [`of`](Self::of) allocates.
    pub fn memory((rows, cols): (usize, usize), nonzeros: usize) -> u128 {
        let (rows, cols, nonzeros) = (rows as u128, cols as u128, nonzeros as u128);
        // The lengths of rows and columns, a window for each column; of a square matrix the transpose, or marks for
        // each column and thread.
        let lengths = size_of::<usize>() as u128 * (rows + cols);
        let index = size_of::<u32>() as u128;
        let square = match rows == cols {
            true => {
                let threads = available_parallelism().map_or(1, |threads| threads.get() as u128);
                (index * (cols + 1 + 2 * nonzeros)).max(threads * index * cols)
            }
            false => 0,
        };
        lengths + square.max(index * cols)
    }

    pub fn of(a: &CsrMatrix<f32>) -> Self {
        let is_square = a.rows() == a.cols();
        let rows = a.outer_iterator().map(|row| row.nnz()).collect();
        let mut columns = vec![0; a.cols()];
        for &column in a.indices() {
            columns[column as usize] += 1;
        }
        Self {
            shape: a.shape(),
            nonzeros: a.nnz(),
            stored_zeros: a.data().iter().filter(|value| **value == 0.0).count(),
            rows: Lengths::of(rows),
            columns: Lengths::of(columns),
            symmetry: is_square.then(|| Symmetry::of(a)),
            bandwidth: Bandwidth::of(a),
            locality: locality(a),
            square: is_square.then(|| Square::of(a)),
        }
    }
}

impl Lengths {
    fn of(mut lengths: Vec<usize>) -> Self {
        lengths.sort_unstable();
        let count = lengths.len();
        let at = |place: usize| {
            lengths
                .get(place.min(count.saturating_sub(1)))
                .copied()
                .unwrap_or(0)
        };
        let total: usize = lengths.iter().sum();
        Self {
            count,
            least: at(0),
            median: at(count / 2),
            mean: total as f64 / count.max(1) as f64,
            percentile_99: at((count as f64 * 0.99) as usize),
            most: at(count),
            empty: lengths.partition_point(|&length| length == 0),
            histogram: histogram(&lengths),
        }
    }
}

/// Bins 0, 1, 2, 3 to 4, 5 to 8 and so on, up to the last that is not empty.
fn histogram(sorted: &[usize]) -> Vec<Bin> {
    let mut bins = Vec::new();
    let (mut least, mut most, mut start) = (0, 0, 0);
    while start < sorted.len() {
        let end = sorted.partition_point(|&length| length <= most);
        bins.push(Bin {
            least,
            most,
            count: end - start,
        });
        start = end;
        least = most + 1;
        most = (2 * most).max(1);
    }
    bins
}

impl Symmetry {
    fn of(a: &CsrMatrix<f32>) -> Self {
        let transposed = a.to_csc();
        let (mut off_diagonal, mut structure, mut values) = (0_u64, 0_u64, 0_u64);
        for (number, (row, column)) in a
            .outer_iterator()
            .zip(transposed.outer_iterator())
            .enumerate()
        {
            let mut counterparts = column.iter().peekable();
            for (index, &value) in row.iter().filter(|(index, _)| *index != number) {
                off_diagonal += 1;
                while counterparts.next_if(|(other, _)| *other < index).is_some() {}
                if let Some(&(_, &other)) = counterparts.peek().filter(|(other, _)| *other == index)
                {
                    structure += 1;
                    values += u64::from(value == other);
                }
            }
        }
        let part = |count| match off_diagonal {
            0 => 1.0,
            all => count as f64 / all as f64,
        };
        Self {
            structure: part(structure),
            values: part(values),
        }
    }
}

impl Bandwidth {
    fn of(a: &CsrMatrix<f32>) -> Self {
        let (mut below, mut above, mut on_diagonal, mut sum) = (0, 0, 0, 0_u128);
        for (number, row) in a.outer_iterator().enumerate() {
            for (index, _) in row.iter() {
                below = below.max(number.saturating_sub(index));
                above = above.max(index.saturating_sub(number));
                on_diagonal += usize::from(index == number);
                sum += number.abs_diff(index) as u128;
            }
        }
        let mean_distance = sum as f64 / a.nnz().max(1) as f64;
        Self {
            below,
            above,
            mean_distance,
            on_diagonal,
        }
    }
}

fn locality(a: &CsrMatrix<f32>) -> f64 {
    let mut last_window = vec![u32::MAX; a.cols()];
    let mut distinct = 0_u64;
    for (number, row) in a.outer_iterator().enumerate() {
        let window = (number / WINDOW) as u32;
        for (index, _) in row.iter() {
            distinct += u64::from(last_window[index] != window);
            last_window[index] = window;
        }
    }
    distinct as f64 / a.nnz().max(1) as f64
}

impl Square {
    fn of(a: &CsrMatrix<f32>) -> Self {
        let indptr = a.indptr();
        let length = |row: u32| indptr.nnz_in_outer_sz(row as usize) as u64;
        let products = a.indices().iter().map(|&column| length(column)).sum();
        let entries = (products <= MOST_PRODUCTS).then(|| Self::entries(a));
        Self { products, entries }
    }

    fn entries(a: &CsrMatrix<f32>) -> u64 {
        let of_row = |marks: &mut [u32], row: usize| {
            let mut entries = 0;
            let nonzeros = a.outer_view(row);
            let factors = nonzeros.iter().flat_map(|nonzeros| nonzeros.indices());
            for &factor in factors {
                let other = a.outer_view(factor as usize);
                for &column in other.iter().flat_map(|other| other.indices()) {
                    let mark = &mut marks[column as usize];
                    entries += u64::from(*mark != row as u32);
                    *mark = row as u32;
                }
            }
            entries
        };
        let size = parallel::large_chunk_size(a.rows());
        let counted = parallel::map_chunks(a.rows(), size, |rows| {
            // The columns that the rows of a chunk have met.
            let mut marks = vec![u32::MAX; a.cols()];
            rows.map(|row| of_row(&mut marks, row)).sum::<u64>()
        });
        counted.into_iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[. 2 .; 2 . 3; . 4 5]`.
    fn small() -> CsrMatrix<f32> {
        let values = vec![2.0, 2.0, 3.0, 4.0, 5.0];
        CsrMatrix::new((3, 3), vec![0, 1, 3, 5], vec![1, 0, 2, 1, 2], values)
    }

    #[test]
    fn the_numbers_of_a_small_matrix_are_those_counted_by_hand() {
        let found = Statistics::of(&small());
        assert_eq!(
            (found.rows.least, found.rows.median, found.rows.most),
            (1, 2, 2)
        );
        assert_eq!(found.columns.empty, 0);
        let symmetry = found.symmetry.unwrap();
        assert_eq!((symmetry.structure, symmetry.values), (1.0, 0.5));
        let bandwidth = found.bandwidth;
        assert_eq!(
            (bandwidth.below, bandwidth.above, bandwidth.on_diagonal),
            (1, 1, 1)
        );
        assert_eq!(bandwidth.mean_distance, 0.8);
        assert_eq!(found.locality, 0.6);
        // Rows of 1, 2 and 2: row 0 meets row 1, row 1 meets rows 0 and 2, row 2 meets rows 1 and 2.
        let square = found.square.unwrap();
        assert_eq!(
            (square.products, square.entries),
            (2 + 3 + 4, Some(2 + 2 + 3))
        );
    }

    #[test]
    fn a_matrix_without_rows_columns_or_nonzeros_has_numbers() {
        for shape in [(0, 0), (0, 3), (3, 0), (3, 3)] {
            let empty = CsrMatrix::new(shape, vec![0; shape.0 + 1], vec![], vec![]);
            let found = Statistics::of(&empty);
            assert_eq!((found.rows.most, found.rows.empty), (0, shape.0));
            assert_eq!(found.locality, 0.0);
        }
    }

    #[test]
    fn memory_counts_each_column_of_a_wide_matrix_and_the_marks_of_a_square_one() {
        assert_eq!(Statistics::memory((3, 5), 1), 8 * (3 + 5) + 4 * 5);
        assert!(Statistics::memory((5, 5), 1) >= 8 * (5 + 5) + 4 * (5 + 1 + 2));
        assert!(Statistics::memory((1, u32::MAX as usize), 1) > 50_000_000_000);
    }

    #[test]
    fn bins_are_powers_of_two_and_have_all_lengths() {
        let bins = histogram(&[0, 0, 1, 2, 3, 4, 4, 9]);
        let found: Vec<_> = bins
            .iter()
            .map(|bin| (bin.least, bin.most, bin.count))
            .collect();
        assert_eq!(
            found,
            [
                (0, 0, 2),
                (1, 1, 1),
                (2, 2, 1),
                (3, 4, 3),
                (5, 8, 0),
                (9, 16, 1)
            ]
        );
        assert_eq!(histogram(&[]), []);
    }
}
