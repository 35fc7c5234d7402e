//! The element types of matrices, as the host's arithmetic sees them.

use half::{bf16, f16};
use std::collections::TryReserveError;
use std::fmt::Debug;
use std::ops::{Add, Neg};
use std::str::FromStr;

/// A binary floating-point type that a matrix's elements may have: f32, f64, f16 or bf16.
///
/// Text is parsed to f16 and bf16 by way of f32, which rounds twice.
pub trait Scalar:
    sealed::Sealed
    + Copy
    + Debug
    + PartialEq
    + FromStr
    + Add<Output = Self>
    + Neg<Output = Self>
    + Send
    + Sync
    + 'static
{
    /// The number 1.
    const ONE: Self;

    /// The bits of a significand, the implicit one included.
    const SIGNIFICAND_BITS: u32;

    /// The greatest relative error of one rounding to nearest: 2^-[`SIGNIFICAND_BITS`](Self::SIGNIFICAND_BITS).
    const UNIT_ROUNDOFF: f64;

    /// The smallest positive normal number.
    const MIN_NORMAL: f64;

    /// [`UNIT_ROUNDOFF`](Self::UNIT_ROUNDOFF) of the type in which sums of products are computed: f32 for f16 and bf16.
    const SUM_UNIT_ROUNDOFF: f64;

    /// [`MIN_NORMAL`](Self::MIN_NORMAL) of the type in which sums of products are computed.
    const SUM_MIN_NORMAL: f64;

    /// The same number; exact.
    fn to_f64(self) -> f64;

    /// The nearest number of this type, ties to even; infinity beyond the type's range.
    fn from_f64(number: f64) -> Self;
}

macro_rules! scalar {
    ($type:ident) => {
        impl sealed::Sealed for $type {}

        impl Scalar for $type {
            const ONE: Self = 1.0;
            const SIGNIFICAND_BITS: u32 = $type::MANTISSA_DIGITS;
            const UNIT_ROUNDOFF: f64 = $type::EPSILON as f64 / 2.0;
            const MIN_NORMAL: f64 = $type::MIN_POSITIVE as f64;
            const SUM_UNIT_ROUNDOFF: f64 = Self::UNIT_ROUNDOFF;
            const SUM_MIN_NORMAL: f64 = Self::MIN_NORMAL;

            fn to_f64(self) -> f64 {
                self.into()
            }

            fn from_f64(number: f64) -> Self {
                number as $type
            }
        }
    };
}

scalar!(f32);
scalar!(f64);

macro_rules! narrow_scalar {
    ($type:ident) => {
        impl sealed::Sealed for $type {}

        impl Scalar for $type {
            const ONE: Self = $type::ONE;
            const SIGNIFICAND_BITS: u32 = $type::MANTISSA_DIGITS;
            const UNIT_ROUNDOFF: f64 = $type::EPSILON.to_f64_const() / 2.0;
            const MIN_NORMAL: f64 = $type::MIN_POSITIVE.to_f64_const();
            const SUM_UNIT_ROUNDOFF: f64 = f32::UNIT_ROUNDOFF;
            const SUM_MIN_NORMAL: f64 = f32::MIN_NORMAL;

            fn to_f64(self) -> f64 {
                self.into()
            }

            fn from_f64(number: f64) -> Self {
                // `from_f64` of the type rounds to f32 first, and then again.
                $type::from_f32(rounded_to_odd(number))
            }
        }
    };
}

narrow_scalar!(f16);
narrow_scalar!(bf16);

/// The number in f32 if it is exact, else the one of its two neighbours whose last bit is set, which rounds to 16
/// bits as the number itself does.
fn rounded_to_odd(number: f64) -> f32 {
    let nearest = number as f32;
    if nearest.is_nan() || f64::from(nearest) == number {
        return nearest;
    }
    let beyond = f64::from(nearest).abs() > number.abs();
    // The neighbour nearer to zero is one less in its bits, whatever the sign.
    f32::from_bits((nearest.to_bits() - u32::from(beyond)) | 1)
}

/// The numbers that a file stores in `N` bytes each, rounded to the nearest of `T`.
///
/// # Errors
///
/// The system has no memory for them.
pub(crate) fn decode<T: Scalar, const N: usize>(
    bytes: &[u8],
    number: impl Fn([u8; N]) -> f64,
) -> Result<Vec<T>, TryReserveError> {
    let (encoded, _) = bytes.as_chunks::<N>();
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(encoded.len())?;
    numbers.extend(encoded.iter().map(|&bytes| T::from_f64(number(bytes))));
    Ok(numbers)
}

mod sealed {
    pub trait Sealed {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_rounding_errs_by_the_unit_roundoff_and_no_less<T: Scalar>() {
        assert_eq!(T::UNIT_ROUNDOFF, 0.5f64.powi(T::SIGNIFICAND_BITS as i32));
        let one = T::from_f64(1.0);
        assert_eq!(one + T::from_f64(T::UNIT_ROUNDOFF), one);
        assert_ne!(one + T::from_f64(2.0 * T::UNIT_ROUNDOFF), one);
    }

    #[test]
    fn unit_roundoff_is_that_of_the_type() {
        one_rounding_errs_by_the_unit_roundoff_and_no_less::<f32>();
        one_rounding_errs_by_the_unit_roundoff_and_no_less::<f64>();
        one_rounding_errs_by_the_unit_roundoff_and_no_less::<f16>();
        one_rounding_errs_by_the_unit_roundoff_and_no_less::<bf16>();
    }

    #[test]
    fn a_number_is_rounded_to_16_bits_once() {
        // Just above half way between 1 and the next number: rounded to f32 first it is half way, and goes to 1.
        for sign in [1.0, -1.0] {
            let above = sign * (1.0 + f16::UNIT_ROUNDOFF + 2f64.powi(-40));
            assert_eq!(
                Scalar::to_f64(<f16 as Scalar>::from_f64(above)),
                sign * (1.0 + 2f64.powi(-10))
            );
            let above = sign * (1.0 + bf16::UNIT_ROUNDOFF + 2f64.powi(-40));
            assert_eq!(
                Scalar::to_f64(<bf16 as Scalar>::from_f64(above)),
                sign * (1.0 + 2f64.powi(-7))
            );
        }
    }

    #[test]
    fn what_16_bits_do_not_hold_is_infinite_and_what_they_do_is_exact() {
        assert_eq!(<f16 as Scalar>::from_f64(65504.0), f16::MAX);
        assert_eq!(<f16 as Scalar>::from_f64(65520.0), f16::INFINITY);
        assert_eq!(<f16 as Scalar>::from_f64(-1e300), f16::NEG_INFINITY);
        assert_eq!(<bf16 as Scalar>::from_f64(1e300), bf16::INFINITY);
        assert_eq!(
            <f16 as Scalar>::from_f64(f16::MIN_NORMAL),
            f16::MIN_POSITIVE
        );
        assert!(<f16 as Scalar>::from_f64(f64::NAN).is_nan());
        assert!(<bf16 as Scalar>::from_f64(0.0).is_sign_positive());
    }
}
