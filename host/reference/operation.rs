//! SpMM in general, in f64: `Y = alpha R + beta Y`, where R is a sum, mean, maximum or minimum of products.

use super::check_operands;
use crate::scalar::Scalar;
use crate::setters::setters;
use ndarray::{Array2, ArrayView2, s};
use sprs::{CsMatViewI, CsVecViewI};
use std::ops::Range;
use warprow_kernels::matrix::Reduction;

/// `Y = alpha R + beta Y`, where `R[i, j]` is the reduction of `A[i, k] * X[k, j]` over the nonzeros of row i: by
/// default their sum, with alpha 1 and beta 0.
///
/// If alpha is 0, R is ignored, even if it is NaN; if beta is 0, Y is.
///
/// ```
/// use warprow::Reduction;
/// use warprow::reference::Operation;
///
/// let a = sprs::CsMatI::<f32, u32>::new((2, 2), vec![0, 2, 2], vec![0, 1], vec![1.0, 3.0]);
/// let x = ndarray::array![[10.0_f32], [20.0]];
/// let mean = Operation::new().reduction(Reduction::Mean);
/// assert_eq!(mean.compute(a.view(), x.view()), ndarray::array![[35.0], [0.0]]);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Operation<'a, E> {
    /// How the products of a row are reduced.
    pub reduction: Reduction,
    /// The factor of R.
    pub alpha: f64,
    /// The factor of what Y held before.
    pub beta: f64,
    /// What Y held before; required if beta is not 0.
    pub y: Option<ArrayView2<'a, E>>,
    /// The maximum number of roundings between a product and the sum of its row, the product's own among them, if it
    /// is known: [`Spmm::summation_depth`](crate::spmm::Spmm::summation_depth). Default: as many as the row has
    /// nonzeros, which holds for any order of summation.
    pub depth: Option<usize>,
}

impl<E> Default for Operation<'_, E> {
    fn default() -> Self {
        Self {
            reduction: Reduction::Sum,
            alpha: 1.0,
            beta: 0.0,
            y: None,
            depth: None,
        }
    }
}

impl<'a, E> Operation<'a, E> {
    /// The product `A X`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields { reduction: Reduction, alpha: f64, beta: f64 }
        optional { y: ArrayView2<'a, E>, depth: usize }
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
        let numbers = result.as_slice_mut().expect("a new array is contiguous");
        parallel::each_row_mut(numbers, width.max(1), |row, numbers| {
            let mut computed = RowResult::new(width);
            self.compute_row(&a, &x, row, 0..width, &mut computed);
            numbers.copy_from_slice(&computed.numbers);
        });
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
            Reduction::Min => f64::INFINITY,
            extremum if extremum.is_extremum() => f64::NEG_INFINITY,
            _ => 0.0,
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
                if self.reduction.is_extremum() {
                    let is_better = match self.reduction {
                        Reduction::Min => product < *number,
                        _ => product > *number,
                    };
                    *number = extremum(*number, product, is_better);
                } else {
                    *number += product;
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
        let terms_of_sum = if self.reduction.is_extremum() {
            // Rounding keeps the order, so the greatest rounded product is the greatest product, rounded once.
            terms.min(1)
        } else {
            terms
        };
        if terms == 0 && self.beta == 0.0 {
            return 0.0;
        }
        let after = self.roundings_after_reduction();
        let depth = self.depth.unwrap_or(usize::MAX).min(terms_of_sum);
        let of_result = gamma(depth + after, E::SUM_UNIT_ROUNDOFF);
        // The reference adds one term after the other.
        let of_reference = gamma(terms_of_sum + after, f64::UNIT_ROUNDOFF);
        let underflows = terms_of_sum as f64 * self.factor(terms).abs() + after as f64;
        (of_result + of_reference) * magnitude + underflows * E::SUM_MIN_NORMAL
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
mod tests;
