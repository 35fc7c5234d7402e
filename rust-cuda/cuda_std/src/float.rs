//! Floating-point arithmetic that `core` lacks: fused multiply-add, fast exponentials and logarithms, 16-bit floats.

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
    /// Negative infinity, the neutral element of a maximum.
    const NEG_INFINITY: Self;

    /// `self * factor + addend`, rounded once (`fma.rn`). The compiler does not fuse a plain `a * b + c`.
    #[must_use]
    fn mul_add(self, factor: Self, addend: Self) -> Self;

    /// The square root, rounded to nearest (`sqrt.rn`).
    #[must_use]
    fn sqrt(self) -> Self;

    /// The `maximum` of IEEE 754-2019 (`max.NaN`): NaN if an operand is NaN, and 0 is greater than -0.
    #[must_use]
    fn maximum(self, other: Self) -> Self;

    /// The float nearest to `number`.
    fn from_u32(number: u32) -> Self;
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

    #[inline(always)]
    fn maximum(self, other: f32) -> f32 {
        backend::maximum_f32(self, other)
    }

    #[inline(always)]
    fn from_u32(number: u32) -> f32 {
        number as f32
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

    #[inline(always)]
    fn maximum(self, other: f64) -> f64 {
        backend::maximum_f64(self, other)
    }

    #[inline(always)]
    fn from_u32(number: u32) -> f64 {
        number as f64
    }
}

/// 2 to the power of `x`, with an error of about 2 units in the last place (`ex2.approx.ftz.f32`). Results less than
/// 2^-126 become zero.
#[inline(always)]
pub fn fast_exp2(x: f32) -> f32 {
    backend::fast_exp2(x)
}

/// The logarithm of `x` to base 2 (`lg2.approx.ftz.f32`). The absolute error is 2^-22 near 1, and 1 unit in the last
/// place elsewhere. Inputs less than 2^-126 count as zero.
#[inline(always)]
pub fn fast_log2(x: f32) -> f32 {
    backend::fast_log2(x)
}

/// A float of at most 32 bits, which converts to f32 exactly: f16, bf16, and f32 itself.
pub trait Narrow: Element {
    /// The value as f32, without rounding.
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
        backend::bf16_to_f32(self.to_bits())
    }

    #[inline(always)]
    fn from_f32(value: f32) -> bf16 {
        bf16::from_bits(backend::f32_to_bf16(value))
    }
}

/// A 16-bit float, f16 or bf16. A register holds two.
pub trait Float16: Narrow {
    /// `low` and `high`, rounded to nearest with ties to even, in the lower and the upper half of a register
    /// (`cvt.rn.f16x2.f32`).
    fn pack(low: f32, high: f32) -> u32;
}

impl Float16 for f16 {
    #[inline(always)]
    fn pack(low: f32, high: f32) -> u32 {
        backend::f32_to_f16x2(high, low)
    }
}

impl Float16 for bf16 {
    #[inline(always)]
    fn pack(low: f32, high: f32) -> u32 {
        backend::f32_to_bf16x2(high, low)
    }
}
