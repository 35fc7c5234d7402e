//! LogSoftmax in f64, and the verification of one.

use super::Verification;
use super::verification::compare;
use crate::scalar::Scalar;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

/// LogSoftmax of each row of `x`, in f64.
#[must_use]
pub fn log_softmax<T: Scalar>(x: ArrayView2<'_, T>) -> Array2<f64> {
    let mut y = x.mapv(T::to_f64);
    for mut row in y.axis_iter_mut(Axis(0)) {
        let (max, logarithm) = normalizer(row.view());
        row.mapv_inplace(|x| x - max - logarithm);
    }
    y
}

/// The maximum of a row, and the logarithm of the sum of exponentials relative to it.
fn normalizer(row: ArrayView1<'_, f64>) -> (f64, f64) {
    let max = row.fold(f64::NEG_INFINITY, |max, &x| max.max(x));
    let sum: f64 = row.iter().map(|x| (x - max).exp()).sum();
    (max, sum.ln())
}

/// Compares `y` with the reference LogSoftmax of the rows of `x`.
///
/// An entry passes if
///
/// `|y - y_ref| <= u (|d| + |d - L|) + W + gamma_n(u) + u (2 L + 4)`, where
///
/// - `d = x - max`, L is the logarithm of the sum of all `exp(d)`, and n is the number of classes;
/// - u is the unit roundoff of the sums: f64 for f64, else f32;
/// - W is the mean of `(3 |d| + 6) u`, weighted by `exp(d)`; gamma is that of [`verify_spmm`](super::verify_spmm).
///
/// The four terms bound the roundings of d and of the result, the relative errors of exponentials, those of their sum,
/// and the error of the logarithm. For f64 the bound is doubled, since the reference has the same errors. The rounding
/// of the result to `T` is added. A NaN or an infinity passes only if the reference rounds to the same.
///
/// # Panics
///
/// If the shapes differ.
pub fn verify_log_softmax<T: Scalar>(x: ArrayView2<'_, T>, y: ArrayView2<'_, T>) -> Verification {
    assert_eq!(x.dim(), y.dim(), "LogSoftmax keeps the shape");
    let u = T::UNIT_ROUNDOFF.min(f32::UNIT_ROUNDOFF);
    let twice = if T::UNIT_ROUNDOFF < f32::UNIT_ROUNDOFF {
        2.0
    } else {
        1.0
    };
    let narrowing = if T::UNIT_ROUNDOFF > u {
        T::UNIT_ROUNDOFF
    } else {
        0.0
    };
    let terms = x.ncols() as f64;
    let of_row = |row: usize| {
        let (x, y) = (x.row(row).mapv(T::to_f64), y.row(row));
        let (max, logarithm) = normalizer(x.view());
        let weighted = |f: &dyn Fn(f64) -> f64| -> f64 {
            let weigh = |d: f64| if d.exp() == 0.0 { 0.0 } else { d.exp() * f(d) };
            x.iter().map(|x| weigh(x - max)).sum()
        };
        let mean = weighted(&|d| 3.0 * d.abs() + 6.0) / weighted(&|_| 1.0);
        let judged = x.iter().zip(y).enumerate().map(|(column, (&x, &y))| {
            let (d, got) = (x - max, y.to_f64());
            let wanted = d - logarithm;
            let sum_error = terms * u / (1.0 - terms * u);
            let of_sum = mean * u + sum_error + u * (2.0 * logarithm + 4.0);
            let bound = twice * (u * (d.abs() + wanted.abs()) + of_sum);
            let bound = bound * (1.0 + narrowing) + narrowing * wanted.abs() + T::MIN_NORMAL;
            let overflows = wanted.is_finite() && got.is_infinite();
            let wanted = if overflows {
                T::from_f64(wanted).to_f64()
            } else {
                wanted
            };
            let scale = wanted.abs().max(1.0);
            compare((row, column), got, wanted, scale, bound)
        });
        judged.fold(Verification::EMPTY, Verification::merge)
    };
    Verification::of_all(x.nrows(), of_row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn equal_elements_have_the_logarithm_of_their_number_however_large_they_are() {
        let y = log_softmax(array![[1e300, 1e300], [0.0, 0.0]].view());
        assert!(y.iter().all(|y| (y + 2f64.ln()).abs() < 1e-15), "{y}");
    }

    #[test]
    fn an_error_of_a_few_roundings_passes_and_one_of_a_hundred_does_not() {
        let x = array![[0.5f32, -1.0, 2.0, 0.0]];
        let right = log_softmax(x.view());
        for (error, passes) in [(0.0, true), (4.0, true), (100.0, false), (f64::NAN, false)] {
            let y = right.mapv(|y| (y + error * f64::from(f32::EPSILON)) as f32);
            assert_eq!(
                verify_log_softmax(x.view(), y.view()).ok(),
                passes,
                "{error}"
            );
        }
    }

    #[test]
    fn an_element_of_negative_infinity_has_no_share_and_positive_infinity_leaves_nothing() {
        let x = array![[0.0f32, f32::NEG_INFINITY], [f32::INFINITY, 1.0]];
        let y = log_softmax(x.view());
        assert_eq!(y.row(0), array![0.0, f64::NEG_INFINITY]);
        assert!(y.row(1)[0].is_nan());
        assert!(verify_log_softmax(x.view(), y.mapv(|y| y as f32).view()).ok());
        let wrong = array![[0.0f32, -1.0], [f32::NAN, f32::NAN]];
        assert!(!verify_log_softmax(x.view(), wrong.view()).ok());
    }
}
