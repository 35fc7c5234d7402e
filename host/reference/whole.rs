//! Operands of small whole numbers, whose product every order of summation gives exactly: a single missing or doubled
//! term shows, however long the row.

use super::check_stored_by_rows;
use super::verification::{Verification, compare};
use crate::scalar::Scalar;
use ndarray::{Array2, ArrayView2};
use sprs::{CsMatI, CsMatViewI};

/// f32 holds every whole number of at most this magnitude.
const EXACT_IN_F32: usize = 1 << 24;

/// The greatest magnitudes of an element of A, of a row's factor and of a column's factor of X, from the ones that tell
/// most terms apart to those for the longest rows.
const MAGNITUDES: [[i32; 3]; 3] = [[2, 4, 3], [1, 4, 3], [1, 1, 1]];

/// The product `A X` of small whole numbers, where A has the nonzeros of a given matrix.
///
/// `X[k, j]` is a factor of row k times a factor of column j. Each term `A[i, k] X[k, j]` has a magnitude from 1 to
/// 24, and the signs in A balance, so that a row's sum is not 0 and its magnitude at most 72, however many terms it
/// has: f16 and bf16 hold it exactly. In f32 all partial sums are exact in rows of up to 699 050 nonzeros. In longer
/// rows the magnitudes are smaller, and sums are exact in any order up to 2^24 nonzeros.
///
/// A result must equal this product entry by entry. A missing or doubled term is an error of at least 1.
#[derive(Clone, Debug)]
pub struct WholeProduct<T> {
    a: CsMatI<T, u32, u32>,
    /// The factors of the rows and of the columns of X.
    rows_of_x: Vec<i32>,
    columns_of_x: Vec<i32>,
    /// For each row of A the sum of its elements times the factors of the rows of X.
    sums: Vec<i32>,
}

impl<T: Scalar> WholeProduct<T> {
    /// Values in place of those of `structure` (m x k, CSR), and an X of k x `features`.
    ///
    /// # Panics
    ///
    /// If `structure` is not stored by rows.
    #[must_use]
    pub fn new<V>(structure: CsMatViewI<'_, V, u32, u32>, features: usize, seed: u64) -> Self {
        check_stored_by_rows(&structure);
        let longest = structure.outer_iterator().map(|row| row.nnz()).max();
        let fits = |[a, row, column]: &[i32; 3]| {
            (a * row * column) as usize * longest.unwrap_or(0) <= EXACT_IN_F32
        };
        let smallest = MAGNITUDES[MAGNITUDES.len() - 1];
        let [of_a, of_row, of_column] = MAGNITUDES.into_iter().find(fits).unwrap_or(smallest);
        let factors = |count: usize, most, stream| -> Vec<i32> {
            parallel::map(count, |i| signed(random(seed, stream, i as u64), most))
        };
        let rows_of_x = factors(structure.cols(), of_row, 0);
        let columns = structure.indices();
        let mut values = vec![T::ONE; structure.nnz()];
        let row_of_values = |row: usize, first: usize, values: &mut [T]| {
            let terms = &columns[first..first + values.len()];
            let of_this_row = random(seed, 1, row as u64);
            // The sum rises to this number, and then stays within a term of it.
            let about = of_a * of_row + 1 + (of_this_row % 8) as i32;
            let sign = if of_this_row >> 63 == 0 { 1 } else { -1 };
            let mut sum = 0;
            for (number, (&k, to)) in (first as u64..).zip(terms.iter().zip(values)) {
                let magnitude = signed(random(seed, 2, number), of_a).abs();
                let rises = sum < about;
                let factor = rows_of_x[k as usize];
                let value = if rises == (factor > 0) {
                    magnitude
                } else {
                    -magnitude
                };
                sum += value * factor;
                *to = T::from_f64(f64::from(sign * value));
            }
            sign * sum
        };
        let mut sums = vec![0; structure.rows()];
        let rows = rows_mut(&structure, &mut values).zip(&mut sums).enumerate();
        parallel::each_task(rows.collect(), |(row, ((first, values), sum))| {
            *sum = row_of_values(row, first, values);
        });
        let indptr = structure.indptr();
        let mut row_ptr = vec![0];
        row_ptr.extend((0..structure.rows()).scan(0, |end, row| {
            *end += indptr.nnz_in_outer_sz(row) as u32;
            Some(*end)
        }));
        Self {
            a: CsMatI::new(
                structure.shape(),
                row_ptr,
                structure.indices().to_vec(),
                values,
            ),
            columns_of_x: factors(features, of_column, 3),
            rows_of_x,
            sums,
        }
    }

    /// A: the structure with whole numbers.
    #[must_use]
    pub fn a(&self) -> CsMatViewI<'_, T, u32, u32> {
        self.a.view()
    }

    /// X, k x n.
    #[must_use]
    pub fn x(&self) -> Array2<T> {
        let shape = (self.rows_of_x.len(), self.columns_of_x.len());
        let mut x = Array2::from_elem(shape, T::ONE);
        let elements = x.as_slice_mut().expect("a new array is contiguous");
        parallel::each_row_mut(elements, shape.1.max(1), |row, elements| {
            let factor = self.rows_of_x[row];
            for (element, &of_column) in elements.iter_mut().zip(&self.columns_of_x) {
                *element = T::from_f64(f64::from(factor * of_column));
            }
        });
        x
    }

    /// Compares all entries of `y` (m x n) with the product. The bound is 0: an entry is right only if it is equal.
    ///
    /// # Panics
    ///
    /// If `y` has not the product's shape.
    pub fn verify(&self, y: ArrayView2<'_, T>) -> Verification {
        assert_eq!(
            y.nrows(),
            self.sums.len(),
            "wanted are all rows of the product"
        );
        self.verify_rows(0, y)
    }

    /// Compares the rows of the product from `first` on, as many as `y` has.
    ///
    /// # Panics
    ///
    /// If the product has not so many rows, or not as many columns as `y`.
    pub fn verify_rows(&self, first: usize, y: ArrayView2<'_, T>) -> Verification {
        assert_eq!(
            y.ncols(),
            self.columns_of_x.len(),
            "wanted are all columns of the product"
        );
        let sums = &self.sums[first..first + y.nrows()];
        let judge_row = |row: usize| {
            let sum = sums[row];
            let entries = self
                .columns_of_x
                .iter()
                .enumerate()
                .map(|(column, &factor)| {
                    let wanted = f64::from(sum * factor);
                    let got = y[(row, column)].to_f64();
                    let magnitude = wanted.abs().max(1.0);
                    compare((first + row, column), got, wanted, magnitude, 0.0)
                });
            entries.fold(Verification::EMPTY, Verification::merge)
        };
        Verification::of_all(sums.len(), judge_row)
    }
}

/// For each row of a matrix: the number of its first nonzero, and the nonzeros' places in a list.
fn rows_mut<'a, V, T>(
    structure: &CsMatViewI<'_, V, u32, u32>,
    mut places: &'a mut [T],
) -> impl Iterator<Item = (usize, &'a mut [T])> {
    let indptr = structure.indptr();
    let lengths: Vec<usize> = (0..structure.rows())
        .map(|row| indptr.nnz_in_outer_sz(row))
        .collect();
    let mut first = 0;
    lengths.into_iter().map(move |length| {
        let row;
        (row, places) = std::mem::take(&mut places).split_at_mut(length);
        first += length;
        (first - length, row)
    })
}

/// A matrix with the nonzeros of `structure`, each of a value from -3 to 3 other than 0. Sums of products of two of
/// them are exact in f32 up to 1.8 million terms; so [`verify_spgemm`](super::verify_spgemm) of their product has to
/// be [exact](Verification::is_exact).
///
/// # Panics
///
/// If `structure` is not stored by rows.
#[must_use]
pub fn whole_matrix<V, T: Scalar>(
    structure: CsMatViewI<'_, V, u32, u32>,
    seed: u64,
) -> CsMatI<T, u32, u32> {
    check_stored_by_rows(&structure);
    let mut row_ptr = vec![0];
    let mut indices = Vec::with_capacity(structure.nnz());
    for row in structure.outer_iterator() {
        indices.extend_from_slice(row.indices());
        row_ptr.push(indices.len() as u32);
    }
    let value = |i| T::from_f64(f64::from(signed(random(seed, 0, i as u64), 3)));
    let mut values = vec![T::ONE; indices.len()];
    parallel::fill(&mut values, value);
    CsMatI::new(structure.shape(), row_ptr, indices, values)
}

/// A graph with the edges of `structure` and weights for which [`Gcn`](crate::gcn::Gcn)'s arithmetic is exact: each
/// node has a degree of 1 or 4, its self-loop included, so the normalised matrix has multiples of 1/4. The weights are
/// whole numbers other than 0, and balance, as in [`WholeProduct`].
///
/// # Panics
///
/// If `structure` is not stored by rows.
#[must_use]
pub fn whole_graph<V, T: Scalar>(
    structure: CsMatViewI<'_, V, u32, u32>,
    seed: u64,
) -> CsMatI<T, u32, u32> {
    let mut graph = whole_matrix::<V, T>(structure, seed);
    let mut weights = Vec::with_capacity(graph.nnz());
    for (row, edges) in graph.outer_iterator().enumerate() {
        // A node without a loop gets one of weight 1.
        let mut degree = i32::from(!edges.indices().contains(&(row as u32)));
        for place in 1..=edges.nnz() {
            let magnitude = signed(random(seed, 4, weights.len() as u64), 2).abs();
            let weight = match degree {
                1 if place == edges.nnz() => 3,
                _ if place == edges.nnz() => 1 - degree,
                ..=0 => magnitude,
                _ => -magnitude,
            };
            degree += weight;
            weights.push(T::from_f64(f64::from(weight)));
        }
    }
    graph.data_mut().copy_from_slice(&weights);
    graph
}

/// A dense matrix in whose columns one number is 1 or -1 and all others are 0, so that a product with it is exact.
#[must_use]
pub fn whole_selection<T: Scalar>(rows: usize, cols: usize, seed: u64) -> Array2<T> {
    let mut matrix = Array2::from_elem((rows, cols), T::from_f64(0.0));
    for column in 0..cols.min(cols * rows) {
        let bits = random(seed, 5, column as u64);
        matrix[((bits >> 32) as usize % rows, column)] = T::from_f64(f64::from(signed(bits, 1)));
    }
    matrix
}

/// A number from `-most` to `most` other than 0.
fn signed(bits: u64, most: i32) -> i32 {
    let number = ((bits >> 32) % (2 * most as u64)) as i32 - most;
    if number < 0 { number } else { number + 1 }
}

/// Number `i` of a random stream: SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators,
/// 2014).
fn random(seed: u64, stream: u64, i: u64) -> u64 {
    let mut z = (seed ^ stream << 56)
        .wrapping_mul(0xd134_2543_de82_ef95)
        .wrapping_add(i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{spmm, verify_spmm};
    use half::{bf16, f16};

    /// Rows of these lengths.
    fn structure(lengths: &[u32], cols: u32) -> CsMatI<u8, u32, u32> {
        let mut row_ptr = vec![0];
        let mut indices = Vec::new();
        for &length in lengths {
            indices.extend(0..length);
            row_ptr.push(indices.len() as u32);
        }
        let values = vec![0; indices.len()];
        CsMatI::new((lengths.len(), cols as usize), row_ptr, indices, values)
    }

    /// Sums in f32 in the order of the row, with term `changed` added so many times.
    fn sum_in_f32<T: Scalar>(whole: &WholeProduct<T>, row: usize, changed: (usize, usize)) -> f32 {
        let terms = whole.a.outer_view(row).unwrap();
        let mut sum = 0.0_f32;
        for (place, (k, &value)) in terms.iter().enumerate() {
            let times = if place == changed.0 { changed.1 } else { 1 };
            for _ in 0..times {
                sum += value.to_f64() as f32 * (whole.rows_of_x[k] * whole.columns_of_x[0]) as f32;
            }
        }
        sum
    }

    fn catches_each_changed_term<T: Scalar>() {
        let structure = structure(&[200_000, 0, 1, 2, 37], 200_000);
        let whole = WholeProduct::<T>::new(structure.view(), 1, 7);
        let product = spmm(whole.a(), whole.x().view());
        let right = product.mapv(T::from_f64);
        assert_eq!(right.mapv(T::to_f64), product, "the type holds the product");
        assert!(whole.verify(right.view()).ok());
        assert!(whole.verify(right.view()).is_exact());
        for place in [0, 1, 99_999, 199_999] {
            for times in [0, 2] {
                let mut wrong = right.clone();
                wrong[(0, 0)] = T::from_f64(sum_in_f32(&whole, 0, (place, times)).into());
                let found = whole.verify(wrong.view());
                assert_eq!(found.failures, 1, "term {place} {times} times");
            }
        }
        assert_eq!(f64::from(sum_in_f32(&whole, 0, (0, 1))), product[(0, 0)]);
    }

    #[test]
    fn one_dropped_or_doubled_term_of_200_000_is_found_in_every_type() {
        catches_each_changed_term::<f32>();
        catches_each_changed_term::<f64>();
        catches_each_changed_term::<f16>();
        catches_each_changed_term::<bf16>();
    }

    #[test]
    fn no_entry_of_a_row_with_nonzeros_is_zero_and_none_is_large() {
        let lengths: Vec<u32> = (0..300).collect();
        let whole = WholeProduct::<f32>::new(structure(&lengths, 300).view(), 9, 3);
        let product = spmm(whole.a(), whole.x().view());
        assert!(product.row(0).iter().all(|&y| y == 0.0));
        let others = product.rows().into_iter().skip(1);
        assert!(others.flatten().all(|y| (1.0..=72.0).contains(&y.abs())));
        assert!(whole.verify(Array2::zeros((300, 9)).view()).failures == 299 * 9);
        let rows = product.slice(ndarray::s![100..200, ..]).mapv(|y| y as f32);
        assert!(whole.verify_rows(100, rows.view()).ok());
        assert!(!whole.verify_rows(101, rows.view()).ok());
    }

    #[test]
    fn longer_rows_have_smaller_terms() {
        let whole = WholeProduct::<f32>::new(structure(&[1 << 20], 1 << 20).view(), 4, 3);
        let most = |numbers: &[i32]| numbers.iter().map(|n| n.abs()).max();
        assert!(whole.a.data().iter().all(|a| a.abs() == 1.0));
        assert_eq!(most(&whole.rows_of_x), Some(4));
        assert!(
            verify_spmm(
                whole.a(),
                whole.x().view(),
                spmm(whole.a(), whole.x().view()).mapv(|y| y as f32).view()
            )
            .is_exact()
        );
    }

    #[test]
    fn each_node_of_a_whole_graph_has_a_degree_of_1_or_4_with_its_loop() {
        let lengths: Vec<u32> = (0..100)
            .map(|row| if row % 3 == 0 { row + 1 } else { row / 2 })
            .collect();
        let graph: CsMatI<f32, u32, u32> = whole_graph(structure(&lengths, 100).view(), 5);
        for (row, edges) in graph.outer_iterator().enumerate() {
            assert!(
                edges.data().iter().all(|w| (1.0..=5.0).contains(&w.abs())),
                "{edges:?}"
            );
            let own = if edges.indices().contains(&(row as u32)) {
                0.0
            } else {
                1.0
            };
            let degree = own + edges.data().iter().sum::<f32>();
            assert!([1.0, 4.0].contains(&degree), "row {row}: {degree}");
        }
    }

    #[test]
    fn a_view_of_some_rows_has_its_own_rows() {
        let all = structure(&[3, 1, 2], 3);
        let whole = WholeProduct::<f64>::new(all.slice_outer(1..3), 2, 1);
        assert_eq!((whole.a.rows(), whole.a.nnz()), (2, 3));
        let matrix: CsMatI<f32, u32, u32> = whole_matrix(all.slice_outer(1..3), 1);
        assert_eq!(matrix.indices(), whole.a.indices());
        assert!(matrix.data().iter().all(|a| (1.0..=3.0).contains(&a.abs())));
    }
}
