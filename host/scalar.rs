//! The element types of matrices, as the host's arithmetic sees them.

use half::{bf16, f16};
use std::fmt::Debug;
use std::ops::{Add, Neg};
use std::str::FromStr;

/// A binary floating-point type that a matrix's elements may have: f32, f64, f16 or bf16.
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

macro_rules! half {
    ($type:ident) => {
        impl sealed::Sealed for $type {}

        impl Scalar for $type {
            const ONE: Self = $type::ONE;
            const SIGNIFICAND_BITS: u32 = $type::MANTISSA_DIGITS;
            const UNIT_ROUNDOFF: f64 = 1.0 / (1_u64 << $type::MANTISSA_DIGITS) as f64;
            const MIN_NORMAL: f64 = $type::MIN_POSITIVE.to_f64_const();

            fn to_f64(self) -> f64 {
                self.into()
            }

            fn from_f64(number: f64) -> Self {
                $type::from_f64(number)
            }
        }
    };
}

half!(f16);
half!(bf16);

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
}
