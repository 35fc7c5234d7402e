//! Floating-point arithmetic on the host.

use half::{bf16, f16};

#[inline(always)]
pub(crate) fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

#[inline(always)]
pub(crate) fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

#[inline(always)]
pub(crate) fn sqrt_f32(x: f32) -> f32 {
    x.sqrt()
}

#[inline(always)]
pub(crate) fn sqrt_f64(x: f64) -> f64 {
    x.sqrt()
}

macro_rules! maximum {
    ($($name:ident($float:ty);)*) => {$(
        #[inline(never)]
        pub(crate) fn $name(a: $float, b: $float) -> $float {
            if a.is_nan() || b.is_nan() {
                <$float>::NAN
            } else if a == b {
                // The only equal numbers with different bits are 0 and -0, and 0 must win.
                <$float>::from_bits(a.to_bits() & b.to_bits())
            } else if a > b {
                a
            } else {
                b
            }
        }
    )*};
}
maximum! {
    maximum_f32(f32);
    maximum_f64(f64);
}

/// Replaces a subnormal number by a zero of the same sign, as `.ftz` instructions do.
#[inline(never)]
fn flush(x: f32) -> f32 {
    if x.is_subnormal() {
        0.0_f32.copysign(x)
    } else {
        x
    }
}

#[inline(never)]
pub(crate) fn fast_exp2(x: f32) -> f32 {
    flush(flush(x).exp2())
}

#[inline(never)]
pub(crate) fn fast_log2(x: f32) -> f32 {
    flush(x).log2()
}

#[inline(never)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    f16::from_bits(bits).to_f32()
}

#[inline(never)]
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    f16::from_f32(value).to_bits()
}

#[inline(never)]
pub(crate) fn f32_to_bf16(value: f32) -> u16 {
    bf16::from_f32(value).to_bits()
}

#[inline(always)]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    bf16::from_bits(bits).to_f32()
}

#[inline(never)]
pub(crate) fn f32_to_f16x2(high: f32, low: f32) -> u32 {
    u32::from(f32_to_f16(high)) << 16 | u32::from(f32_to_f16(low))
}

#[inline(never)]
pub(crate) fn f32_to_bf16x2(high: f32, low: f32) -> u32 {
    u32::from(f32_to_bf16(high)) << 16 | u32::from(f32_to_bf16(low))
}
