//! The exponential of numbers up to 0 and the logarithm of numbers from 1 on, as LogSoftmax needs them.

use cuda_std::float::{fast_exp2, fast_log2};
use cuda_std::prelude::*;

/// A type with an exponential and a logarithm.
pub trait ExpLn: Real {
    /// e to the power of `self`, which is at most 0 or NaN. Results below the normal numbers are 0.
    ///
    /// The relative error is at most (2 |x| + 6) units of rounding.
    fn exp(self) -> Self;

    /// The natural logarithm of `self`, which is from 1 to 2^32 or NaN.
    ///
    /// The error is at most (2 y + 4) units of rounding, y the result.
    fn ln(self) -> Self;
}

impl ExpLn for f32 {
    #[inline(always)]
    fn exp(self) -> f32 {
        fast_exp2(self * core::f32::consts::LOG2_E)
    }

    #[inline(always)]
    fn ln(self) -> f32 {
        fast_log2(self) * core::f32::consts::LN_2
    }
}

/// ln 2 as the sum of two numbers. The first has so few bits that its product with an exponent is exact.
const LN_2: [f64; 2] = [
    f64::from_bits(0x3fe6_2e42_fee0_0000),
    f64::from_bits(0x3dea_39ef_3579_3c76),
];

impl ExpLn for f64 {
    /// With `x = k ln 2 + r`, k an integer and |r| at most 0.35, the result is 2^k times the exponential series of r.
    /// The first omitted term is below 2^-57.
    #[inline(always)]
    fn exp(self) -> f64 {
        // The logarithm of the least normal number is -708.4.
        if self < -708.0 {
            return 0.0;
        }
        // Rounds to nearest: the number is not positive, and the conversion truncates. If x is NaN, k is 0 and r is
        // NaN.
        let k = self.mul_add_real(core::f64::consts::LOG2_E, -0.5) as i32;
        let r = (-f64::from(k)).mul_add_real(LN_2[0], self);
        let r = (-f64::from(k)).mul_add_real(LN_2[1], r);
        let series = horner(
            r,
            [
                1.0 / 6_227_020_800.0,
                1.0 / 479_001_600.0,
                1.0 / 39_916_800.0,
                1.0 / 3_628_800.0,
                1.0 / 362_880.0,
                1.0 / 40_320.0,
                1.0 / 5_040.0,
                1.0 / 720.0,
                1.0 / 120.0,
                1.0 / 24.0,
                1.0 / 6.0,
                0.5,
                1.0,
                1.0,
            ],
        );
        series * f64::from_bits(((k + 1023) as u64) << 52)
    }

    /// With `x = 2^e m` and m from 0.71 to 1.42, the result is `e ln 2 + 2 artanh f`, where `f = (m - 1) / (m + 1)`.
    /// The first omitted term of the series of artanh is below 2^-57.
    #[inline(always)]
    fn ln(self) -> f64 {
        if self.is_nan() {
            return self;
        }
        let bits = self.to_bits();
        let mut e = (bits >> 52) as i32 - 1023;
        let mut m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
        if m > core::f64::consts::SQRT_2 {
            m *= 0.5;
            e += 1;
        }
        let f = (m - 1.0) / (m + 1.0);
        let series = horner(
            f * f,
            [
                2.0 / 21.0,
                2.0 / 19.0,
                2.0 / 17.0,
                2.0 / 15.0,
                2.0 / 13.0,
                2.0 / 11.0,
                2.0 / 9.0,
                2.0 / 7.0,
                2.0 / 5.0,
                2.0 / 3.0,
                2.0,
            ],
        );
        let e = f64::from(e);
        e.mul_add_real(LN_2[0], f.mul_add_real(series, e * LN_2[1]))
    }
}

/// [`Real::mul_add`] under another name, since on the host f64 has an inherent method of the same name.
trait MulAdd {
    fn mul_add_real(self, factor: f64, addend: f64) -> f64;
}

impl MulAdd for f64 {
    #[inline(always)]
    fn mul_add_real(self, factor: f64, addend: f64) -> f64 {
        Real::mul_add(self, factor, addend)
    }
}

/// Evaluates the polynomial in x with these coefficients, the one of the highest power first.
#[inline(always)]
fn horner<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut value = 0.0;
    let mut i = 0;
    while i < N {
        value = Real::mul_add(value, x, coefficients[i]);
        i += 1;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_within_their_bound() {
        for i in 0..200_000 {
            let x = -708.0 * (f64::from(i) / 200_000.0).powi(3);
            let (found, wanted) = (ExpLn::exp(x), x.exp());
            let bound = (2.0 * x.abs() + 6.0) * f64::EPSILON / 2.0;
            assert!(
                (found / wanted - 1.0).abs() <= bound,
                "{x}: {found:e} {wanted:e}"
            );
            let x = (x / 9.0) as f32;
            let (found, wanted) = (ExpLn::exp(x), f64::from(x).exp());
            let bound = f64::from(2.0 * x.abs() + 6.0) * f64::from(f32::EPSILON) / 2.0;
            assert!(
                (f64::from(found) / wanted - 1.0).abs() <= bound,
                "{x}: {found:e} {wanted:e}"
            );
        }
        assert_eq!(ExpLn::exp(0.0_f64), 1.0);
        assert_eq!(ExpLn::exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(ExpLn::exp(f32::NEG_INFINITY), 0.0);
        assert!(ExpLn::exp(f64::NAN).is_nan() && ExpLn::exp(f32::NAN).is_nan());
    }

    #[test]
    fn logarithms_are_within_their_bound() {
        for i in 0..200_000 {
            let x = 1.0 + (f64::from(i) / 200_000.0).powi(4) * 4e9;
            let (found, wanted) = (ExpLn::ln(x), x.ln());
            let bound = (2.0 * wanted + 4.0) * f64::EPSILON / 2.0;
            assert!((found - wanted).abs() <= bound, "{x}: {found:e} {wanted:e}");
            let x = x as f32;
            let (found, wanted) = (f64::from(ExpLn::ln(x)), f64::from(x).ln());
            let bound = (2.0 * wanted + 4.0) * f64::from(f32::EPSILON) / 2.0;
            assert!((found - wanted).abs() <= bound, "{x}: {found:e} {wanted:e}");
        }
        assert_eq!(ExpLn::ln(1.0_f64), 0.0);
        assert!(ExpLn::ln(f64::NAN).is_nan() && ExpLn::ln(f32::NAN).is_nan());
    }
}
