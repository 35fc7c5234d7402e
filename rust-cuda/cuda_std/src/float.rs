//! Floating-point arithmetic that kernels want and `core` has not: fused multiply-add, fast exponentials, 16-bit floats.

use crate::atomic::AtomicAdd;
use crate::backend;
use crate::element::Element;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub};
use half::{bf16, f16};

/// A floating-point type that kernels compute in: f32 or f64.
pub trait Real:
    Element
    + AtomicAdd
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Below all numbers: where a maximum starts.
    const NEG_INFINITY: Self;

    /// `self * factor + addend`, rounded once (`fma.rn`). A plain `a * b + c` is not contracted.
    #[must_use]
    fn mul_add(self, factor: Self, addend: Self) -> Self;

    /// The square root, rounded to nearest (`sqrt.rn`).
    #[must_use]
    fn sqrt(self) -> Self;
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    const NEG_INFINITY: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn mul_add(self, factor: f32, addend: f32) -> f32 {
        backend::fma_f32(self, factor, addend)
    }

    #[inline(always)]
    fn sqrt(self) -> f32 {
        backend::sqrt_f32(self)
    }
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const NEG_INFINITY: f64 = f64::NEG_INFINITY;

    #[inline(always)]
    fn mul_add(self, factor: f64, addend: f64) -> f64 {
        backend::fma_f64(self, factor, addend)
    }

    #[inline(always)]
    fn sqrt(self) -> f64 {
        backend::sqrt_f64(self)
    }
}

/// 2 to the power of `x`, to about 2 units in the last place, results below 2^-126 flushed to zero (`ex2.approx.ftz.f32`).
#[inline(always)]
pub fn fast_exp2(x: f32) -> f32 {
    backend::fast_exp2(x)
}

/// The logarithm of `x` to base 2, to an absolute error of 2^-22 near 1 and 1 unit in the last place elsewhere; inputs
/// below 2^-126 count as zero (`lg2.approx.ftz.f32`).
#[inline(always)]
pub fn fast_log2(x: f32) -> f32 {
    backend::fast_log2(x)
}

/// A float that f32 widens from and rounds to: f16, bf16, f32 itself.
pub trait Narrow: Element {
    /// The value as f32, exact.
    fn to_f32(self) -> f32;

    /// `value` rounded to nearest, ties to even.
    fn from_f32(value: f32) -> Self;
}

impl Narrow for f32 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn from_f32(value: f32) -> f32 {
        value
    }
}

impl Narrow for f16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        backend::f16_to_f32(self.to_bits())
    }

    #[inline(always)]
    fn from_f32(value: f32) -> f16 {
        f16::from_bits(backend::f32_to_f16(value))
    }
}

impl Narrow for bf16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        // A bf16 is the upper half of an f32.
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn from_f32(value: f32) -> bf16 {
        bf16::from_bits(backend::f32_to_bf16(value))
    }
}
