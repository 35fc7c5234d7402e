//! The result of comparing a product with the reference, and the comparison of single entries.

use std::fmt;

use crate::scalar::Scalar;
use ndarray::ArrayView2;

use super::operation::gamma;

/// The result of [`verify_spmm`](super::verify_spmm) or of another comparison with the reference.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct Verification {
    /// The number of entries that were compared.
    pub entries: usize,
    /// The number of entries whose error exceeds their bound.
    pub failures: usize,
    /// The maximum of `|y - y_ref| / (|A||X|)` over all entries.
    ///
    /// The error is relative to the sum of the terms' magnitudes and not to the result, which may be near 0 because
    /// terms cancel. For other operations than `A X`, the divisor is `|alpha| |A||X| + |beta Y|`. The maximum is
    /// infinite if a NaN or an infinity is not the one of the reference.
    pub max_relative_error: f64,
    /// The entry with the greatest quotient of error and bound; `None` if there are no entries.
    pub worst: Option<Entry>,
}

/// One entry of a product that was verified.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Its row, counted from 0.
    pub row: usize,
    /// Its column, counted from 0.
    pub col: usize,
    /// The value in the product.
    pub got: f64,
    /// The value in the reference.
    pub wanted: f64,
    /// `|got - wanted|`; infinite if one of them is NaN or infinite and the other is not the same.
    pub error: f64,
    /// Maximum error that rounding can cause.
    pub bound: f64,
}

impl Verification {
    /// Whether every entry is within its bound.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.failures == 0
    }

    /// Whether every entry equals the reference's, as one must where all sums are exact.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.ok() && self.max_relative_error == 0.0
    }

    pub(super) const EMPTY: Self = Self {
        entries: 0,
        failures: 0,
        max_relative_error: 0.0,
        worst: None,
    };

    /// The results of `verify` for each number of `0..count`, merged. It runs in parallel.
    pub(super) fn of_all(count: usize, verify: impl Fn(usize) -> Self + Sync) -> Self {
        parallel::reduce(count, || Self::EMPTY, verify, Self::merge)
    }

    /// Unites the results of two sets of entries. Of two equally bad entries, the first by row and column is the worst.
    pub(super) fn merge(self, other: Self) -> Self {
        let worst = match (self.worst, other.worst) {
            (Some(a), Some(b)) => {
                let order = (b.part_of_bound().total_cmp(&a.part_of_bound()))
                    .then((a.row, a.col).cmp(&(b.row, b.col)));
                Some(if order.is_le() { a } else { b })
            }
            (a, b) => a.or(b),
        };
        Self {
            entries: self.entries + other.entries,
            failures: self.failures + other.failures,
            max_relative_error: self.max_relative_error.max(other.max_relative_error),
            worst,
        }
    }
}

impl Entry {
    fn part_of_bound(&self) -> f64 {
        // An exact result may have a bound of 0.
        if self.error == 0.0 {
            0.0
        } else {
            self.error / self.bound
        }
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(worst) = &self.worst else {
            return write!(f, "verified: no entries");
        };
        if self.ok() {
            write!(f, "verified: {} entries", self.entries)?;
        } else {
            write!(f, "wrong: {} of {} entries", self.failures, self.entries)?;
        }
        write!(
            f,
            ", greatest error relative to |A||X| {:.2e}; worst at row {}, column {}: got {:e}, wanted {:e}, \
             error {:.2e}, \
             bound {:.2e}",
            self.max_relative_error,
            worst.row,
            worst.col,
            worst.got,
            worst.wanted,
            worst.error,
            worst.bound
        )
    }
}

/// Compares `y` with `wanted` entry by entry: a difference of at most `tolerance`, relative to the greater of 1 and the
/// magnitude of what is wanted, passes. A NaN or an infinity passes only where the same is wanted.
///
/// # Panics
///
/// If the shapes differ.
pub fn verify_close<T: Scalar>(
    wanted: ArrayView2<'_, f64>,
    y: ArrayView2<'_, T>,
    tolerance: f64,
) -> Verification {
    assert_eq!(wanted.dim(), y.dim(), "the shapes have to be the same");
    let entries = wanted.indexed_iter().zip(y).map(|((place, &wanted), y)| {
        let scale = wanted.abs().max(1.0);
        compare(place, y.to_f64(), wanted, scale, tolerance * scale)
    });
    entries.fold(Verification::EMPTY, Verification::merge)
}

/// Verifies one entry. The error is relative to `magnitude`, and `bound` is the bound before the result is rounded to
/// `E`.
pub(super) fn judge<E: Scalar>(
    row: usize,
    col: usize,
    got: f64,
    wanted: f64,
    magnitude: f64,
    bound: f64,
) -> Verification {
    // The number farthest from zero within the bound. If it is beyond the range of E, infinity is right.
    let farthest = E::from_f64(wanted + bound.copysign(wanted)).to_f64();
    let rounded_to_infinity = got.is_infinite() && wanted.is_finite() && got == farthest;
    let error = if rounded_to_infinity {
        0.0
    } else {
        distance(got, wanted)
    };
    let bound = if E::UNIT_ROUNDOFF > E::SUM_UNIT_ROUNDOFF && bound + wanted.abs() > 0.0 {
        // The last bit of a subnormal result is that of the least normal number.
        bound + E::UNIT_ROUNDOFF * (wanted.abs() + bound).max(E::MIN_NORMAL)
    } else {
        bound
    };
    entry((row, col), [got, wanted], error, magnitude, bound)
}

/// The number of terms in a sum, and their rounding errors.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// The number of terms.
    pub count: usize,
    /// Maximum relative error of one addition.
    pub sum_roundoff: f64,
    /// Maximum relative error of a term before it is added.
    pub operand_error: f64,
}

/// Verifies entries. Each is given by row, column, value, reference, and the sum of the magnitudes of its terms.
pub(super) fn judge_entries<T: Scalar>(
    entries: impl Iterator<Item = (usize, usize, f64, f64, f64)>,
    terms: Terms,
) -> Verification {
    let n = terms.count;
    let gammas = gamma(n, terms.sum_roundoff) + gamma(n, f64::UNIT_ROUNDOFF) + terms.operand_error;
    let judged = entries.map(|(row, col, got, wanted, magnitude)| {
        // The sum of magnitudes may overflow even if the sum does not.
        let magnitude = magnitude.min(f64::MAX);
        let bound = gammas * magnitude + n as f64 * T::SUM_MIN_NORMAL;
        judge::<T>(row, col, got, wanted, magnitude, bound)
    });
    judged.fold(Verification::EMPTY, Verification::merge)
}

/// Compares one entry with the reference. Its error may be at most `bound`, and is reported relative to `magnitude`.
pub(super) fn compare(
    (row, col): (usize, usize),
    got: f64,
    wanted: f64,
    magnitude: f64,
    bound: f64,
) -> Verification {
    let error = distance(got, wanted);
    entry((row, col), [got, wanted], error, magnitude, bound)
}

/// `|got - wanted|`; infinite if one of them is NaN or infinite and the other is not the same.
fn distance(got: f64, wanted: f64) -> f64 {
    if wanted.is_finite() && got.is_finite() {
        (got - wanted).abs()
    } else if got == wanted || (got.is_nan() && wanted.is_nan()) {
        0.0
    } else {
        f64::INFINITY
    }
}

fn entry(
    (row, col): (usize, usize),
    [got, wanted]: [f64; 2],
    error: f64,
    magnitude: f64,
    bound: f64,
) -> Verification {
    let within = error == 0.0 || (error.is_finite() && error <= bound);
    Verification {
        entries: 1,
        failures: usize::from(!within),
        max_relative_error: if error == 0.0 { 0.0 } else { error / magnitude },
        worst: Some(Entry {
            row,
            col,
            got,
            wanted,
            error,
            bound,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_nan_or_an_infinity_passes_where_it_belongs_and_nowhere_else() {
        let wanted = array![[f64::NAN, f64::INFINITY, 2.0]];
        let verify = |y: [f32; 3]| verify_close(wanted.view(), array![y].view(), 1e-4);
        assert!(verify([f32::NAN, f32::INFINITY, 2.0001]).ok());
        for wrong in [
            [1.0, f32::INFINITY, 2.0],
            [f32::NAN, f32::NAN, 2.0],
            [f32::NAN, f32::NEG_INFINITY, 2.0],
            [f32::NAN, f32::INFINITY, f32::NAN],
            [f32::NAN, f32::INFINITY, 2.001],
        ] {
            assert_eq!(verify(wrong).failures, 1, "{wrong:?}");
        }
    }
}
