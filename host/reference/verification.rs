//! What the comparison of a result with the reference finds, entry by entry.

use std::fmt;

use crate::scalar::Scalar;
use ndarray::ArrayView2;

use super::operation::gamma;

/// What [`verify_spmm`](super::verify_spmm) or another comparison with the reference found.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct Verification {
    /// The entries compared.
    pub entries: usize,
    /// The entries beyond their bound.
    pub failures: usize,
    /// The greatest `|y - y_ref| / (|A||X|)` of all entries: an error relative to the sum of the terms' magnitudes,
    /// which, unlike one relative to the result, means something where the terms cancel. Infinite where a NaN or an
    /// infinity is not the one wanted. `|alpha| |A||X| + |beta Y|` is in the place of `|A||X|` for other operations
    /// than `A X`.
    pub max_relative_error: f64,
    /// The entry whose error is the greatest part of its bound; `None` if there are no entries.
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
    /// What the product holds.
    pub got: f64,
    /// What the reference holds.
    pub wanted: f64,
    /// `|got - wanted|`; infinite where one of them is NaN or infinite and the other is not the same.
    pub error: f64,
    /// The greatest error that rounding explains.
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

    /// Adds what was found in other entries; of two equally bad ones the first by row and column is the worst.
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

/// One entry's verification: `magnitude` is what the error is relative to, `bound` that of a number before it is
/// rounded to `E`.
pub(super) fn judge<E: Scalar>(
    row: usize,
    col: usize,
    got: f64,
    wanted: f64,
    magnitude: f64,
    bound: f64,
) -> Verification {
    // Away from zero by the bound: beyond E's range such a number may be rounded to an infinity.
    let farthest = E::from_f64(wanted + bound.copysign(wanted)).to_f64();
    let rounded_to_infinity = got.is_infinite() && wanted.is_finite() && got == farthest;
    let error = if rounded_to_infinity {
        0.0
    } else {
        distance(got, wanted)
    };
    let bound = if E::UNIT_ROUNDOFF > E::SUM_UNIT_ROUNDOFF && bound + wanted.abs() > 0.0 {
        // Of a subnormal result the last bit is that of the smallest normal number.
        bound + E::UNIT_ROUNDOFF * (wanted.abs() + bound).max(E::MIN_NORMAL)
    } else {
        bound
    };
    entry((row, col), [got, wanted], error, magnitude, bound)
}

/// The terms of a sum: how many there are, and what is done to them before they are added up.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub count: usize,
    /// The greatest relative error of one step.
    pub sum_roundoff: f64,
    /// The greatest relative error of a term before it is added.
    pub operand_error: f64,
}

/// The verification of entries, each its row, column, what was got and what is wanted, and the sum of its terms'
/// magnitudes.
pub(super) fn judge_entries<T: Scalar>(
    entries: impl Iterator<Item = (usize, usize, f64, f64, f64)>,
    terms: Terms,
) -> Verification {
    let n = terms.count;
    let gammas = gamma(n, terms.sum_roundoff) + gamma(n, f64::UNIT_ROUNDOFF) + terms.operand_error;
    // The result is rounded once more where its type is shorter than the sum's.
    let rounding = if T::UNIT_ROUNDOFF > f32::UNIT_ROUNDOFF {
        T::UNIT_ROUNDOFF
    } else {
        0.0
    };
    let judged = entries.map(|(row, col, got, wanted, magnitude)| {
        let magnitude = magnitude.min(f64::MAX);
        let bound = gammas * (1.0 + rounding) * magnitude
            + rounding * wanted.abs()
            + n as f64 * T::MIN_NORMAL;
        // What rounds to infinity is wanted as that.
        let overflows = wanted.is_finite() && got.is_infinite();
        let wanted = if overflows {
            T::from_f64(wanted).to_f64()
        } else {
            wanted
        };
        compare((row, col), got, wanted, magnitude, bound)
    });
    judged.fold(Verification::EMPTY, Verification::merge)
}

/// One entry, with the greatest error that is allowed.
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

/// `|got - wanted|`; infinite where one of them is NaN or infinite and the other is not the same.
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
