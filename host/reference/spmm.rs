//! The product `A X` in f64, and the verification of one by the error bound of each entry's dot product.

use super::operation::{Operation, RowResult};
use super::verification::{Verification, judge};
use crate::scalar::Scalar;
use ndarray::{Array2, ArrayView2};
use sprs::CsMatViewI;

/// Columns of X that one parallel task computes.
const COLUMNS: usize = 64;

/// The product `A X` (m x n) of a sparse matrix (m x k, CSR) and a dense one (k x n). Sums are f64, in the order in
/// which the rows of A store the nonzeros.
///
/// # Panics
///
/// If `a` is not stored by rows or has not as many columns as `x` has rows, or if the product has more than
/// `isize::MAX` bytes.
#[must_use]
pub fn spmm<T: Scalar>(a: CsMatViewI<'_, T, u32, u32>, x: ArrayView2<'_, T>) -> Array2<f64> {
    Operation::default().compute(a, x)
}

/// Compares `y`, computed in any order of summation, with the reference product `A X`, as [`Operation::verify`] does.
///
/// # Panics
///
/// If `a` is not stored by rows or the shapes do not fit: `a` m x k, `x` k x n, `y` m x n.
pub fn verify_spmm<T: Scalar>(
    a: CsMatViewI<'_, T, u32, u32>,
    x: ArrayView2<'_, T>,
    y: ArrayView2<'_, T>,
) -> Verification {
    Operation::default().verify(a, x, y)
}

impl<E: Scalar> Operation<'_, E> {
    /// Compares `found`, computed in any order of summation, with the operation's result in f64.
    ///
    /// An entry passes if its error is at most
    ///
    /// `(gamma_n(u) + gamma_n(u_64)) M + m lambda`, with `gamma_n(u) = n u / (1 - n u)`,
    ///
    /// plus the rounding of a 16-bit result to `E`. Here
    ///
    /// - u is the unit roundoff of the type of sums (f32 for 16-bit elements), and u_64 that of f64, the reference's;
    /// - lambda is the least normal number of the type of sums, which bounds the underflow of each of m operations;
    /// - for sums, M is `|alpha| |A||X| + |beta Y|` (for a mean, alpha is divided by the length), and n is the number
    ///   of nonzeros in the row plus the number of operations that follow;
    /// - for a maximum or minimum, M is the magnitude of the result, and n is 1 plus the number of operations that
    ///   follow, since rounding keeps the order of products.
    ///
    /// The bound holds for any order of summation, with fused operations or without (Higham, "Accuracy and Stability of
    /// Numerical Algorithms", 2nd edition, section 3.1). Where [`depth`](Self::depth) is known, it replaces the number
    /// of nonzeros in the first gamma: where many lanes sum a long row in short parts, the bound is much smaller.
    ///
    /// A row without nonzeros must give exactly 0 if beta is 0. Where the reference is finite, NaN fails, and infinity
    /// fails unless `E` rounds the result to it. Where the reference is NaN or infinite, the result must be the same.
    ///
    /// The bound is that of the worst case, and in a long row it can hide a missing term. To test long rows, use
    /// operands whose sums are exact, and require equality: [`WholeProduct`](super::WholeProduct).
    ///
    /// # Panics
    ///
    /// - `a` is not stored by rows, or the shapes are not `a` m x k, `x` k x n and `found` m x n.
    /// - beta is not 0, and `y` is missing or has another shape than the product.
    pub fn verify<V: Scalar>(
        &self,
        a: CsMatViewI<'_, V, u32, u32>,
        x: ArrayView2<'_, E>,
        found: ArrayView2<'_, E>,
    ) -> Verification {
        self.check(&a, &x);
        assert_eq!(
            found.dim(),
            (a.rows(), x.ncols()),
            "the product of a {} x {} matrix and a dense {} x {} one cannot be {} x {}",
            a.rows(),
            a.cols(),
            x.nrows(),
            x.ncols(),
            found.nrows(),
            found.ncols()
        );
        // Rows are divided by columns, so that several threads share a row of a million nonzeros.
        let parts = x.ncols().div_ceil(COLUMNS);
        Verification::of_all(a.rows() * parts, |part| {
            let (row, first) = (part % a.rows(), part / a.rows() * COLUMNS);
            let columns = first..x.ncols().min(first + COLUMNS);
            let mut computed = RowResult::new(0);
            self.compute_row(&a, &x, row, columns.clone(), &mut computed);
            let judged = columns.map(|col| {
                let got = found[(row, col)].to_f64();
                // The sum of magnitudes may overflow even if the sum does not.
                let magnitude = computed.magnitudes[col - first].min(f64::MAX);
                let bound = self.bound(computed.terms, magnitude);
                let wanted = computed.numbers[col - first];
                judge::<E>(row, col, got, wanted, magnitude, bound)
            });
            judged.fold(Verification::EMPTY, Verification::merge)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{arr2, array};
    use sprs::CsMatI;

    #[test]
    fn product_of_a_rectangular_matrix_with_an_empty_row_is_the_hand_computed_one() {
        let a = CsMatI::new(
            (3, 4),
            vec![0u32, 2, 2, 3],
            vec![0u32, 3, 1],
            vec![2.0f32, -1.0, 4.0],
        );
        let x = array![[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]];
        assert_eq!(
            spmm(a.view(), x.view()),
            arr2(&[[-5.0, -4.0], [0.0, 0.0], [12.0, 16.0]])
        );
    }

    #[test]
    fn f32_terms_that_cancel_are_added_in_f64() {
        let a = CsMatI::new((1, 3), vec![0u32, 3], vec![0u32, 1, 2], vec![1.0f32; 3]);
        let x = array![[1e8f32], [1.0], [-1e8]];
        assert_eq!(spmm(a.view(), x.view()), arr2(&[[1.0]]));
    }

    #[test]
    fn empty_operands_give_empty_or_zero_products() {
        let none = CsMatI::<f64, u32, u32>::new((0, 0), vec![0u32], vec![], vec![]);
        assert_eq!(
            spmm(none.view(), Array2::zeros((0, 3)).view()).dim(),
            (0, 3)
        );
        let no_columns = CsMatI::<f64, u32, u32>::new((2, 0), vec![0u32, 0, 0], vec![], vec![]);
        assert_eq!(
            spmm(no_columns.view(), Array2::zeros((0, 3)).view()),
            Array2::<f64>::zeros((2, 3))
        );
        let one = CsMatI::new((1, 1), vec![0u32, 1], vec![0u32], vec![1.0f64]);
        assert_eq!(spmm(one.view(), Array2::zeros((1, 0)).view()).dim(), (1, 0));
    }

    #[test]
    fn a_view_of_some_rows_is_multiplied_by_its_own_rows() {
        let a = CsMatI::new(
            (3, 1),
            vec![0u32, 1, 2, 3],
            vec![0u32; 3],
            vec![1.0f64, 2.0, 3.0],
        );
        let x = array![[10.0f64]];
        assert_eq!(spmm(a.slice_outer(1..3), x.view()), arr2(&[[20.0], [30.0]]));
    }

    #[test]
    #[should_panic(expected = "a 1 x 2 matrix cannot multiply a dense 3 x 1 one")]
    fn shapes_that_do_not_fit_panic_with_both_shapes() {
        let a = CsMatI::new((1, 2), vec![0u32, 1], vec![0u32], vec![1.0f32]);
        let _ = spmm(a.view(), Array2::zeros((3, 1)).view());
    }

    #[test]
    #[should_panic(expected = "found one stored by columns")]
    fn a_matrix_stored_by_columns_panics() {
        let a = CsMatI::new_csc((1, 2), vec![0u32, 1, 1], vec![0u32], vec![1.0f32]);
        let _ = spmm(a.view(), Array2::zeros((2, 1)).view());
    }

    fn row_of_ones<T: Scalar>(terms: u32) -> (CsMatI<T, u32, u32>, Array2<T>) {
        let one = T::from_f64(1.0);
        let a = CsMatI::new(
            (1, terms as usize),
            vec![0, terms],
            (0..terms).collect(),
            vec![one; terms as usize],
        );
        (a, Array2::from_elem((terms as usize, 1), one))
    }

    fn verify_sum_of_ones<T: Scalar>(terms: u32, got: f64) -> Verification {
        let (a, x) = row_of_ones::<T>(terms);
        verify_spmm(
            a.view(),
            x.view(),
            Array2::from_elem((1, 1), T::from_f64(got)).view(),
        )
    }

    #[test]
    fn an_error_within_the_bound_passes_and_one_a_few_ulps_above_fails() {
        // The sum is 3, its bound 9 u, a unit in the last place 4 u.
        let u = f32::UNIT_ROUNDOFF;
        for sign in [-1.0, 1.0] {
            assert!(verify_sum_of_ones::<f32>(3, 3.0 + sign * 8.0 * u).ok());
            let wrong = verify_sum_of_ones::<f32>(3, 3.0 + sign * 12.0 * u);
            assert!(!wrong.ok());
            assert_eq!(wrong.failures, 1);
            assert_eq!(wrong.max_relative_error, 4.0 * u);
        }
        // In f64 the reference's own rounding doubles the bound to 18 u.
        let u = f64::UNIT_ROUNDOFF;
        assert!(verify_sum_of_ones::<f64>(3, 3.0 + 16.0 * u).ok());
        assert!(!verify_sum_of_ones::<f64>(3, 3.0 + 20.0 * u).ok());
    }

    #[test]
    fn one_product_must_be_rounded_correctly() {
        let u = f32::UNIT_ROUNDOFF;
        assert!(verify_sum_of_ones::<f32>(1, 1.0).ok());
        assert!(!verify_sum_of_ones::<f32>(1, 1.0 + 2.0 * u).ok());
        assert!(!verify_sum_of_ones::<f32>(1, 1.0 - 2.0 * u).ok());
    }

    #[test]
    fn a_sum_in_f32_of_terms_that_cancel_passes() {
        let terms = [1e8f32, 1.0, 3.25, -1e8, 7e-3];
        let a = CsMatI::new((1, 5), vec![0u32, 5], (0..5u32).collect(), vec![1.0f32; 5]);
        let x = Array2::from_shape_vec((5, 1), terms.to_vec()).unwrap();
        let sum = terms.iter().fold(0.0f32, |sum, term| sum + term);
        let found = verify_spmm(a.view(), x.view(), array![[sum]].view());
        assert!(found.ok(), "{found}");
        let worst = found.worst.unwrap();
        assert!(
            worst.error > 0.1 * worst.wanted,
            "the terms do not cancel: {found}"
        );
    }

    #[test]
    fn nan_and_infinity_never_pass_for_a_finite_result() {
        for got in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let found = verify_sum_of_ones::<f32>(3, got);
            assert!(!found.ok());
            assert_eq!(found.max_relative_error, f64::INFINITY);
        }
    }

    #[test]
    fn where_the_reference_is_not_finite_the_same_is_demanded() {
        let a = CsMatI::new((1, 2), vec![0u32, 2], vec![0u32, 1], vec![1.0f32; 2]);
        let cases = [
            (f32::INFINITY, 1.0, f32::INFINITY),
            (f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY),
            (f32::INFINITY, f32::NEG_INFINITY, f32::NAN),
            (f32::NAN, 1.0, f32::NAN),
        ];
        for (first, second, wanted) in cases {
            for got in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0] {
                let x = array![[first], [second]];
                let found = verify_spmm(a.view(), x.view(), array![[got]].view());
                let same = got == wanted || (got.is_nan() && wanted.is_nan());
                assert_eq!(found.ok(), same, "{found}");
            }
        }
    }

    #[test]
    fn an_empty_row_must_be_exactly_zero() {
        let a = CsMatI::<f32, u32, u32>::new((1, 1), vec![0u32, 0], vec![], vec![]);
        let x = array![[1.0f32]];
        assert!(verify_spmm(a.view(), x.view(), array![[0.0]].view()).ok());
        assert!(verify_spmm(a.view(), x.view(), array![[-0.0]].view()).ok());
        assert!(!verify_spmm(a.view(), x.view(), array![[f32::from_bits(1)]].view()).ok());
    }

    #[test]
    fn a_product_that_underflows_may_be_flushed_to_zero() {
        let a = CsMatI::new((1, 1), vec![0u32, 1], vec![0u32], vec![1e-20f32]);
        let x = array![[1e-19f32]];
        assert!(verify_spmm(a.view(), x.view(), array![[0.0]].view()).ok());
        assert!(!verify_spmm(a.view(), x.view(), array![[1e-37]].view()).ok());
    }

    #[test]
    fn the_worst_entry_is_found_in_a_matrix_with_rows_of_different_length() {
        let a = CsMatI::new(
            (3, 3),
            vec![0u32, 3, 3, 4],
            vec![0u32, 1, 2, 2],
            vec![1.0f32; 4],
        );
        let x = array![[1.0f32, 2.0], [1.0, 2.0], [1.0, 2.0]];
        let mut y = array![[3.0f32, 6.0], [0.0, 0.0], [1.0, 2.0]];
        assert_eq!(
            verify_spmm(a.view(), x.view(), y.view()).max_relative_error,
            0.0
        );
        y[(2, 1)] = 2.5;
        y[(0, 0)] = 3.000001;
        let found = verify_spmm(a.view(), x.view(), y.view());
        let worst = found.worst.unwrap();
        assert_eq!(
            (worst.row, worst.col, worst.got, worst.wanted),
            (2, 1, 2.5, 2.0)
        );
        assert_eq!((found.entries, found.failures), (6, 2));
        assert_eq!(found.max_relative_error, 0.25);
        assert!(
            found.to_string().starts_with("wrong: 2 of 6 entries"),
            "{found}"
        );
    }

    #[test]
    fn an_empty_product_is_verified() {
        let a = CsMatI::<f32, u32, u32>::new((0, 2), vec![0u32], vec![], vec![]);
        let found = verify_spmm(
            a.view(),
            Array2::zeros((2, 3)).view(),
            Array2::zeros((0, 3)).view(),
        );
        assert!(found.ok());
        assert_eq!(found.to_string(), "verified: no entries");
    }

    #[test]
    #[should_panic(
        expected = "the product of a 1 x 3 matrix and a dense 3 x 1 one cannot be 1 x 2"
    )]
    fn a_product_of_the_wrong_shape_panics_with_the_shapes() {
        let (a, x) = row_of_ones::<f32>(3);
        let _ = verify_spmm(a.view(), x.view(), Array2::zeros((1, 2)).view());
    }
}
