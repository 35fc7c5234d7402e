//! SpMM in general, in f64: `Y = alpha R + beta Y`, where R is a sum, mean, maximum or minimum of products.

use super::check_operands;
use crate::scalar::Scalar;
use ndarray::{Array2, ArrayView2, s};
use rayon::prelude::*;
use sprs::{CsMatViewI, CsVecViewI};
use std::ops::Range;
use warprow_kernels::spmm::Reduction;

/// `Y = alpha R + beta Y`, where `R[i, j]` is the reduction of `A[i, k] * X[k, j]` over the nonzeros of row i: by
/// default their sum, with alpha 1 and beta 0.
///
/// If alpha is 0, R is ignored, even if it is NaN; if beta is 0, Y is.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a, E> {
    /// How the products of a row are reduced.
    pub reduction: Reduction,
    /// The factor of R.
    pub alpha: f64,
    /// The factor of what Y held before.
    pub beta: f64,
    /// What Y held before; required if beta is not 0.
    pub y: Option<ArrayView2<'a, E>>,
}

impl<E> Default for Operation<'_, E> {
    fn default() -> Self {
        Self {
            reduction: Reduction::Sum,
            alpha: 1.0,
            beta: 0.0,
            y: None,
        }
    }
}

impl<E: Scalar> Operation<'_, E> {
    /// Y after the operation, in f64.
    ///
    /// # Panics
    ///
    /// - `a` is not stored by rows, or has not as many columns as `x` has rows.
    /// - beta is not 0, and `y` is missing or has another shape than the product.
    /// - The product has more than `isize::MAX` bytes.
    #[must_use]
    pub fn compute<V: Scalar>(
        &self,
        a: CsMatViewI<'_, V, u32, u32>,
        x: ArrayView2<'_, E>,
    ) -> Array2<f64> {
        self.check(&a, &x);
        let width = x.ncols();
        let mut result = Array2::zeros((a.rows(), width));
        result
            .as_slice_mut()
            .expect("a new array is contiguous")
            .par_chunks_mut(width.max(1))
            .enumerate()
            .for_each_init(
                || RowResult::new(width),
                |computed, (row, numbers)| {
                    self.compute_row(&a, &x, row, 0..width, computed);
                    numbers.copy_from_slice(&computed.numbers);
                },
            );
        result
    }

    pub(super) fn check<V>(&self, a: &CsMatViewI<'_, V, u32, u32>, x: &ArrayView2<'_, E>) {
        check_operands(a, x);
        if self.beta != 0.0 {
            let shape = self.y.as_ref().map(ArrayView2::dim);
            assert_eq!(
                shape,
                Some((a.rows(), x.ncols())),
                "with beta {} the Y from before is wanted",
                self.beta
            );
        }
    }

    /// Computes some columns of a row of the result, and the magnitudes to which their errors are relative.
    pub(super) fn compute_row<V: Scalar>(
        &self,
        a: &CsMatViewI<'_, V, u32, u32>,
        x: &ArrayView2<'_, E>,
        row: usize,
        columns: Range<usize>,
        to: &mut RowResult,
    ) {
        let terms = a.outer_view(row).expect("the row is one of the matrix");
        to.numbers.resize(columns.len(), 0.0);
        to.magnitudes.resize(columns.len(), 0.0);
        to.terms = terms.nnz();
        let start = match self.reduction {
            Reduction::Sum | Reduction::Mean => 0.0,
            Reduction::Max => f64::NEG_INFINITY,
            Reduction::Min => f64::INFINITY,
        };
        to.numbers.fill(if terms.nnz() == 0 { 0.0 } else { start });
        to.magnitudes.fill(0.0);
        self.reduce(&terms, &x.slice(s![.., columns.clone()]), to);
        let factor = self.factor(to.terms);
        let entries = to.numbers.iter_mut().zip(&mut to.magnitudes);
        for (column, (number, magnitude)) in columns.zip(entries) {
            if self.reduction.is_extremum() {
                *magnitude = number.abs();
            }
            (*number, *magnitude) = if self.alpha == 0.0 {
                (0.0, 0.0)
            } else {
                (factor * *number, factor.abs() * *magnitude)
            };
            if let Some(y) = self.y.as_ref().filter(|_| self.beta != 0.0) {
                let before = self.beta * y[(row, column)].to_f64();
                *number += before;
                *magnitude += before.abs();
            }
        }
    }

    /// The factor of the reduced products in a row of `terms` nonzeros: alpha, for a mean divided by `terms`.
    fn factor(&self, terms: usize) -> f64 {
        match self.reduction {
            Reduction::Mean => self.alpha / terms.max(1) as f64,
            _ => self.alpha,
        }
    }

    /// Reduces the products of a row, and sums their magnitudes.
    fn reduce<V: Scalar>(
        &self,
        terms: &CsVecViewI<'_, V, u32>,
        x: &ArrayView2<'_, E>,
        to: &mut RowResult,
    ) {
        for (column, &value) in terms.iter() {
            let value = value.to_f64();
            let entries = to.numbers.iter_mut().zip(&mut to.magnitudes);
            for ((number, magnitude), &x) in entries.zip(x.row(column)) {
                let product = value * x.to_f64();
                *magnitude += product.abs();
                match self.reduction {
                    Reduction::Sum | Reduction::Mean => *number += product,
                    Reduction::Max => *number = extremum(*number, product, product > *number),
                    Reduction::Min => *number = extremum(*number, product, product < *number),
                }
            }
        }
    }

    /// Maximum number of roundings after the reduction: of the factor, of the multiplication by it, and of the addition
    /// of beta Y.
    fn roundings_after_reduction(&self) -> usize {
        let of_factor = match self.reduction {
            // Rounded are the length, its reciprocal, alpha times that, and the product with it.
            Reduction::Mean => 4,
            _ => usize::from(self.alpha != 1.0),
        };
        of_factor + usize::from(self.beta != 0.0)
    }

    /// Maximum error that rounding can cause in an entry of a row of `terms` nonzeros, before it is rounded to `E`.
    pub(super) fn bound(&self, terms: usize, magnitude: f64) -> f64 {
        let of_reduction = if self.reduction.is_extremum() {
            // Rounding keeps the order, so the greatest rounded product is the greatest product, rounded once.
            terms.min(1)
        } else {
            terms
        };
        let roundings = of_reduction + self.roundings_after_reduction();
        if terms == 0 && self.beta == 0.0 {
            return 0.0;
        }
        let gammas = gamma(roundings, E::SUM_UNIT_ROUNDOFF) + gamma(roundings, f64::UNIT_ROUNDOFF);
        let underflows = of_reduction as f64 * self.factor(terms).abs()
            + self.roundings_after_reduction() as f64;
        gammas * magnitude + underflows * E::SUM_MIN_NORMAL
    }
}

/// `other` if it is to be chosen or is NaN, else `one`; `one` if that is NaN.
fn extremum(one: f64, other: f64, choose_other: bool) -> f64 {
    if !one.is_nan() && (choose_other || other.is_nan()) {
        other
    } else {
        one
    }
}

/// Some columns of a row of a result.
pub(super) struct RowResult {
    /// The entries.
    pub(super) numbers: Vec<f64>,
    /// For each entry, the magnitude to which its error is relative: the sum of the magnitudes of all terms, or the
    /// magnitude of an extremum.
    pub(super) magnitudes: Vec<f64>,
    /// The number of nonzeros in the row.
    pub(super) terms: usize,
}

impl RowResult {
    pub(super) fn new(width: usize) -> Self {
        Self {
            numbers: vec![0.0; width],
            magnitudes: vec![0.0; width],
            terms: 0,
        }
    }
}

/// `n u / (1 - n u)`: the maximum relative error of n roundings; infinite if `n u` is 1 or more.
pub(super) fn gamma(roundings: usize, unit_roundoff: f64) -> f64 {
    let product = roundings as f64 * unit_roundoff;
    if product < 1.0 {
        product / (1.0 - product)
    } else {
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{arr2, array};
    use sprs::CsMatI;

    /// Rows of 2 x0 - x1, nothing, and 4 x1.
    fn operand() -> CsMatI<f32, u32, u32> {
        CsMatI::new(
            (3, 2),
            vec![0, 2, 2, 3],
            vec![0, 1, 1],
            vec![2.0, -1.0, 4.0],
        )
    }

    fn of(reduction: Reduction) -> Operation<'static, f32> {
        Operation {
            reduction,
            ..Operation::default()
        }
    }

    #[test]
    fn each_reduction_of_a_small_matrix_is_the_hand_computed_one() {
        let (a, x) = (operand(), array![[1.0_f32, -3.0], [5.0, 7.0]]);
        for (reduction, expected) in [
            (
                Reduction::Sum,
                arr2(&[[-3.0, -13.0], [0.0, 0.0], [20.0, 28.0]]),
            ),
            (
                Reduction::Mean,
                arr2(&[[-1.5, -6.5], [0.0, 0.0], [20.0, 28.0]]),
            ),
            (
                Reduction::Max,
                arr2(&[[2.0, -6.0], [0.0, 0.0], [20.0, 28.0]]),
            ),
            (
                Reduction::Min,
                arr2(&[[-5.0, -7.0], [0.0, 0.0], [20.0, 28.0]]),
            ),
        ] {
            assert_eq!(
                of(reduction).compute(a.view(), x.view()),
                expected,
                "{reduction:?}"
            );
        }
    }

    #[test]
    fn a_nan_among_the_products_is_the_greatest_and_the_least() {
        for x in [array![[f32::NAN], [1.0]], array![[1.0], [f32::NAN]]] {
            for reduction in [Reduction::Max, Reduction::Min] {
                let result = of(reduction).compute(operand().view(), x.view());
                assert!(result[(0, 0)].is_nan());
                assert_eq!(result[(1, 0)], 0.0);
            }
        }
    }

    #[test]
    fn what_is_multiplied_by_zero_is_not_looked_at() {
        let nan = Array2::from_elem((3, 1), f32::NAN);
        let x = array![[1.0_f32], [1.0]];
        let ignores_y = Operation {
            y: Some(nan.view()),
            alpha: 2.0,
            ..of(Reduction::Sum)
        };
        let result = ignores_y.compute(operand().view(), x.view());
        assert_eq!(result, arr2(&[[2.0], [0.0], [8.0]]));
        let y = array![[1.0_f32], [2.0], [3.0]];
        let ignores_x = Operation {
            alpha: 0.0,
            beta: -2.0,
            y: Some(y.view()),
            ..of(Reduction::Max)
        };
        let result = ignores_x.compute(operand().view(), nan.slice(ndarray::s![..2, ..]));
        assert_eq!(result, arr2(&[[-2.0], [-4.0], [-6.0]]));
    }

    #[test]
    #[should_panic(expected = "with beta 1 the Y from before is wanted")]
    fn beta_without_y_panics() {
        let operation = Operation {
            beta: 1.0,
            ..of(Reduction::Sum)
        };
        let _ = operation.compute(operand().view(), array![[1.0_f32], [1.0]].view());
    }

    /// The verification of `got` as the product of rows of ones and the columns of `x`.
    fn verify<E: Scalar>(operation: Operation<'_, E>, x: &[f64], got: f64) -> bool {
        let n = x.len() as u32;
        let a = CsMatI::new(
            (1, x.len()),
            vec![0, n],
            (0..n).collect(),
            vec![E::ONE; x.len()],
        );
        let x = Array2::from_shape_fn((x.len(), 1), |(i, _)| E::from_f64(x[i]));
        let got = Array2::from_elem((1, 1), E::from_f64(got));
        operation.verify(a.view(), x.view(), got.view()).ok()
    }

    #[test]
    fn a_16_bit_result_may_err_by_its_own_rounding_and_no_more() {
        fn check<E: Scalar>() {
            let ulp = 4.0 * E::UNIT_ROUNDOFF;
            assert!(verify::<E>(Operation::default(), &[1.0, 1.0, 1.0], 3.0));
            // Neither number next to 3 is 3 rounded.
            assert!(!verify::<E>(
                Operation::default(),
                &[1.0, 1.0, 1.0],
                3.0 + ulp
            ));
            assert!(!verify::<E>(
                Operation::default(),
                &[1.0, 1.0, 1.0],
                3.0 - ulp
            ));
            // The sum is half way between two numbers, and f32 may have had it on either side.
            let half_way = [3.0, ulp / 2.0];
            assert!(verify::<E>(Operation::default(), &half_way, 3.0));
            assert!(verify::<E>(Operation::default(), &half_way, 3.0 + ulp));
            assert!(!verify::<E>(
                Operation::default(),
                &half_way,
                3.0 + 2.0 * ulp
            ));
        }
        check::<half::f16>();
        check::<half::bf16>();
    }

    #[test]
    fn an_infinity_passes_for_a_number_beyond_the_range_and_for_no_other() {
        let sum = |x: &[f64], got| verify::<half::f16>(Operation::default(), x, got);
        assert!(sum(&[60000.0, 60000.0], f64::INFINITY));
        assert!(!sum(&[60000.0, 60000.0], f64::NEG_INFINITY));
        assert!(!sum(&[60000.0, 60000.0], 65504.0));
        assert!(!sum(&[60000.0, 1.0], f64::INFINITY));
        assert!(sum(&[-60000.0, -60000.0], f64::NEG_INFINITY));
    }

    #[test]
    fn an_extremum_may_err_by_one_rounding_whatever_the_number_of_products() {
        let terms = vec![1.0; 1000];
        let max = |got| verify::<f32>(of(Reduction::Max), &terms, got);
        assert!(max(1.0));
        assert!(!max(1.0 + 2.0 * f64::from(f32::EPSILON)));
        assert!(!verify::<f32>(of(Reduction::Min), &[-1.0, 1.0], 1.0));
    }

    #[test]
    fn wrong_factors_and_lengths_fail() {
        let y = array![[10.0_f32]];
        let operation = Operation {
            reduction: Reduction::Mean,
            alpha: 2.0,
            beta: 3.0,
            y: Some(y.view()),
        };
        assert!(verify(operation, &[1.0, 2.0], 33.0));
        for wrong in [36.0, 31.5, 13.0, 3.0, 30.0] {
            assert!(!verify(operation, &[1.0, 2.0], wrong), "{wrong}");
        }
    }
}
