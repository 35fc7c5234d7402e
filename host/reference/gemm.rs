//! The product of two dense matrices in f64, and the verification of one.

use super::Verification;
use super::verification::{Terms, judge_entries};
use crate::scalar::Scalar;
use crate::setters::setters;
use ndarray::{Array2, ArrayView1, ArrayView2};

/// The epilogue of a product of dense matrices: bias, then ReLU.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DenseEpilogue<'a, T> {
    /// One number for each column, which is added to the sums; default: none.
    pub bias: Option<ArrayView1<'a, T>>,
    /// Whether negative results become 0; default: no. A NaN stays.
    pub relu: bool,
}

impl<T> Default for DenseEpilogue<'_, T> {
    fn default() -> Self {
        Self {
            bias: None,
            relu: false,
        }
    }
}

impl<'a, T> DenseEpilogue<'a, T> {
    /// Stores the sums as they are.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields { relu: bool }
        optional { bias: ArrayView1<'a, T> }
    }
}

/// The rounding errors of the arithmetic in which a product was computed; its error bound depends on them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Arithmetic {
    /// Maximum relative error of one addition.
    pub sum_roundoff: f64,
    /// Maximum relative error of the rounding of an operand before the multiplication.
    pub operand_roundoff: f64,
}

impl Arithmetic {
    /// Rounds every step to nearest: in f64 for f64, in f32 for all other types.
    #[must_use]
    pub fn of<T: Scalar>() -> Self {
        Self {
            sum_roundoff: T::UNIT_ROUNDOFF.min(f32::UNIT_ROUNDOFF),
            operand_roundoff: 0.0,
        }
    }

    /// Sums in f32 on tensor cores.
    ///
    /// They truncate where f32 rounds to nearest: up to nine times for eight terms, relative to the greatest term
    /// (Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021). Four times the unit
    /// roundoff for each term is more than that.
    #[must_use]
    pub fn tensor_cores() -> Self {
        Self {
            sum_roundoff: 4.0 * f32::UNIT_ROUNDOFF,
            operand_roundoff: 0.0,
        }
    }

    /// As [`tensor_cores`](Self::tensor_cores), with operands rounded to tf32.
    #[must_use]
    pub fn tf32() -> Self {
        Self {
            operand_roundoff: 0.5f64.powi(11),
            ..Self::tensor_cores()
        }
    }

    /// The terms of a sum over `depth` products and the bias.
    fn terms(self, depth: usize) -> Terms {
        let v = self.operand_roundoff;
        Terms {
            count: depth + 1,
            sum_roundoff: self.sum_roundoff,
            operand_error: 2.0 * v + v * v,
        }
    }
}

/// The product `X W` (m x k by k x n), then the epilogue. Sums are f64, in the order of k.
///
/// # Panics
///
/// If the shapes do not fit, or the product has more than `isize::MAX` bytes.
#[must_use]
pub fn gemm<T: Scalar>(
    x: ArrayView2<'_, T>,
    w: ArrayView2<'_, T>,
    epilogue: DenseEpilogue<'_, T>,
) -> Array2<f64> {
    check_operands(&x, &w, &epilogue);
    let w = w.mapv(T::to_f64);
    let mut product = Array2::zeros((x.nrows(), w.ncols()));
    let sums = product.as_slice_mut().expect("a new array is contiguous");
    parallel::each_row_mut(sums, w.ncols().max(1), |row, sums| {
        accumulate(&x, &w, row, sums, |term| term);
        for (column, sum) in sums.iter_mut().enumerate() {
            *sum = epilogue.apply(*sum, column);
        }
    });
    product
}

/// Compares `y`, computed in any order of summation, with the reference product.
///
/// An entry passes if
///
/// `|y - y_ref| <= B + w max(|y_ref| + B, lambda_T)`, with `B = (gamma_n(u) + gamma_n(u_64) + 2 v + v^2) s + n lambda`,
///
/// where
///
/// - n = k + 1 is the number of terms, and s the sum of their magnitudes, bias included;
/// - u is `arithmetic.sum_roundoff`, v is `arithmetic.operand_roundoff`, and u_64 is the unit roundoff of f64;
/// - w is the unit roundoff of `T` if results are rounded to `T` from a longer type, else 0, and lambda_T is the least
///   normal number of `T`;
/// - gamma and lambda are those of [`verify_spmm`](super::verify_spmm).
///
/// ReLU increases no error. Where the reference is finite, NaN fails, and infinity fails unless a number within B
/// rounds to it. Where the reference is NaN or infinite, the result must be the same.
///
/// # Panics
///
/// If the shapes do not fit: `x` m x k, `w` k x n, `y` m x n.
pub fn verify_gemm<T: Scalar>(
    x: ArrayView2<'_, T>,
    w: ArrayView2<'_, T>,
    epilogue: DenseEpilogue<'_, T>,
    arithmetic: Arithmetic,
    y: ArrayView2<'_, T>,
) -> Verification {
    check_operands(&x, &w, &epilogue);
    assert_eq!(
        y.dim(),
        (x.nrows(), w.ncols()),
        "the product of a {} x {} matrix and a {} x {} one cannot be {} x {}",
        x.nrows(),
        x.ncols(),
        w.nrows(),
        w.ncols(),
        y.nrows(),
        y.ncols()
    );
    let terms = arithmetic.terms(x.ncols());
    let w = w.mapv(T::to_f64);
    Verification::of_all(x.nrows(), |row| {
        let (wanted, magnitudes) = wanted_row(&x, &w, &epilogue, row);
        judge_row(row, y.row(row), &wanted, &magnitudes, terms)
    })
}

/// A reference product that is computed once, for the verification of several.
#[derive(Clone, Debug)]
pub struct GemmReference {
    /// Of each row, what is wanted and the sums of the terms' magnitudes.
    rows: Vec<(Vec<f64>, Vec<f64>)>,
    depth: usize,
}

impl GemmReference {
    /// The product `X W`, then the epilogue.
    ///
    /// # Panics
    ///
    /// If the shapes do not fit.
    #[must_use]
    pub fn new<T: Scalar>(
        x: ArrayView2<'_, T>,
        w: ArrayView2<'_, T>,
        epilogue: DenseEpilogue<'_, T>,
    ) -> Self {
        check_operands(&x, &w, &epilogue);
        let w = w.mapv(T::to_f64);
        Self {
            rows: parallel::map(x.nrows(), |row| wanted_row(&x, &w, &epilogue, row)),
            depth: x.ncols(),
        }
    }

    /// Compares `y` as [`verify_gemm`] does. If Y has more rows than the reference, those of X repeat: row i is
    /// compared with row i modulo the number of rows of the reference.
    ///
    /// # Panics
    ///
    /// If Y has not as many columns as the reference, or has rows and the reference has none.
    pub fn verify<T: Scalar>(&self, arithmetic: Arithmetic, y: ArrayView2<'_, T>) -> Verification {
        let terms = arithmetic.terms(self.depth);
        Verification::of_all(y.nrows(), |row| {
            let (wanted, magnitudes) = &self.rows[row % self.rows.len()];
            assert_eq!(y.ncols(), wanted.len(), "the columns of Y");
            judge_row(row, y.row(row), wanted, magnitudes, terms)
        })
    }
}

/// A row of the reference product, and the sums of its terms' magnitudes.
fn wanted_row<T: Scalar>(
    x: &ArrayView2<'_, T>,
    w: &Array2<f64>,
    epilogue: &DenseEpilogue<'_, T>,
    row: usize,
) -> (Vec<f64>, Vec<f64>) {
    let mut sums = vec![0.0; w.ncols()];
    let mut magnitudes = vec![0.0; w.ncols()];
    accumulate(x, w, row, &mut sums, |term| term);
    accumulate(x, w, row, &mut magnitudes, f64::abs);
    for (column, sum) in sums.iter_mut().enumerate() {
        *sum = epilogue.apply(*sum, column);
    }
    if let Some(bias) = epilogue.bias {
        for (magnitude, bias) in magnitudes.iter_mut().zip(bias) {
            *magnitude += bias.to_f64().abs();
        }
    }
    (sums, magnitudes)
}

/// Compares a row of a product with the reference.
fn judge_row<T: Scalar>(
    row: usize,
    found: ArrayView1<'_, T>,
    wanted: &[f64],
    magnitudes: &[f64],
    terms: Terms,
) -> Verification {
    let columns = wanted.iter().zip(magnitudes).zip(found).enumerate();
    judge_entries::<T>(
        columns.map(|(column, ((&wanted, &magnitude), found))| {
            (row, column, found.to_f64(), wanted, magnitude)
        }),
        terms,
    )
}

impl<T: Scalar> DenseEpilogue<'_, T> {
    fn apply(&self, sum: f64, column: usize) -> f64 {
        let sum = sum + self.bias.map_or(0.0, |bias| bias[column].to_f64());
        if self.relu && sum < 0.0 { 0.0 } else { sum }
    }
}

fn check_operands<T>(
    x: &ArrayView2<'_, T>,
    w: &ArrayView2<'_, T>,
    epilogue: &DenseEpilogue<'_, T>,
) {
    assert_eq!(
        x.ncols(),
        w.nrows(),
        "a {} x {} matrix cannot multiply a {} x {} one",
        x.nrows(),
        x.ncols(),
        w.nrows(),
        w.ncols()
    );
    if let Some(bias) = epilogue.bias {
        assert_eq!(
            bias.len(),
            w.ncols(),
            "a bias has an element for each column of W"
        );
    }
}

/// Adds `weigh(x_ik w_kj)` to `sums[j]` for every k, where i is `row`.
fn accumulate<T: Scalar>(
    x: &ArrayView2<'_, T>,
    w: &Array2<f64>,
    row: usize,
    sums: &mut [f64],
    weigh: impl Fn(f64) -> f64,
) {
    for (&x, weights) in x.row(row).iter().zip(w.rows()) {
        let x = x.to_f64();
        for (sum, &weight) in sums.iter_mut().zip(weights) {
            *sum += weigh(x * weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_product_with_bias_and_relu_is_the_hand_computed_one() {
        let x = array![[1.0f32, 2.0], [3.0, -4.0], [f32::NAN, 0.0]];
        let w = array![[1.0f32, 0.5, -1.0], [2.0, 1.0, 0.0]];
        let bias = array![0.0f32, 1.0, 0.5];
        let epilogue = DenseEpilogue::new().bias(bias.view()).relu(true);
        let y = gemm(x.view(), w.view(), epilogue);
        assert_eq!(y.row(0), array![5.0, 3.5, 0.0]);
        assert_eq!(y.row(1), array![0.0, 0.0, 0.0]);
        assert!(y.row(2).iter().all(|y| y.is_nan()));
        let plain = gemm(x.view(), w.view(), DenseEpilogue::default());
        assert_eq!(plain.row(1), array![-5.0, -2.5, -3.0]);
    }

    #[test]
    fn products_without_rows_columns_or_terms_are_what_there_is() {
        let empty = |m, k, n| {
            gemm::<f64>(
                Array2::zeros((m, k)).view(),
                Array2::zeros((k, n)).view(),
                DenseEpilogue::default(),
            )
        };
        assert_eq!(empty(0, 2, 3).dim(), (0, 3));
        assert_eq!(empty(2, 0, 3), Array2::<f64>::zeros((2, 3)));
        assert_eq!(empty(2, 3, 0).dim(), (2, 0));
    }

    #[test]
    fn a_reference_is_that_of_the_product_and_its_rows_repeat() {
        let x = array![[1.0f32, 2.0], [3.0, -4.0]];
        let w = array![[1.0f32, 0.5], [2.0, 1.0]];
        let bias = array![1.0f32, -9.0];
        let epilogue = DenseEpilogue::new().bias(bias.view()).relu(true);
        let reference = GemmReference::new(x.view(), w.view(), epilogue);
        let mut y = array![[6.0f32, 0.0], [0.0, 0.0], [6.0, 0.0]];
        assert!(reference.verify(Arithmetic::of::<f32>(), y.view()).ok());
        y[(2, 1)] = 0.1;
        let found = reference.verify(Arithmetic::of::<f32>(), y.view());
        assert_eq!((found.entries, found.failures), (6, 1));
        let worst = found.worst.unwrap();
        assert_eq!((worst.row, worst.col), (2, 1));
    }

    #[test]
    fn the_bound_grows_with_the_terms_and_no_more() {
        let (x, w) = (
            Array2::from_elem((1, 3), 1.0f32),
            Array2::from_elem((3, 1), 1.0),
        );
        let verify = |got: f64, arithmetic| {
            let y = Array2::from_elem((1, 1), got as f32);
            verify_gemm(
                x.view(),
                w.view(),
                DenseEpilogue::default(),
                arithmetic,
                y.view(),
            )
        };
        let u = f32::UNIT_ROUNDOFF;
        // The sum is 3 and has four terms: the bound is 12 u, a unit in the last place 4 u.
        let nearest = Arithmetic::of::<f32>();
        assert!(verify(3.0 + 12.0 * u, nearest).ok());
        assert!(!verify(3.0 + 16.0 * u, nearest).ok());
        assert!(verify(3.0 + 48.0 * u, Arithmetic::tensor_cores()).ok());
        assert!(!verify(3.0 + 60.0 * u, Arithmetic::tensor_cores()).ok());
        assert!(verify(3.0 + 2e-3, Arithmetic::tf32()).ok());
        assert!(!verify(3.0 + 4e-3, Arithmetic::tf32()).ok());
        assert!(!verify(f64::NAN, Arithmetic::tf32()).ok());
    }
}
