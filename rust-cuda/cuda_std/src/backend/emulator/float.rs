//! Floating-point arithmetic, by the host's own.

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

/// Subnormal numbers as zero, with their sign, as the `.ftz` instructions take and give them.
#[inline(always)]
fn flush(x: f32) -> f32 {
    if x.is_subnormal() {
        0.0_f32.copysign(x)
    } else {
        x
    }
}

#[inline(always)]
pub(crate) fn fast_exp2(x: f32) -> f32 {
    flush(flush(x).exp2())
}

#[inline(always)]
pub(crate) fn fast_log2(x: f32) -> f32 {
    flush(x).log2()
}

#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    f16::from_bits(bits).to_f32()
}

#[inline(always)]
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    f16::from_f32(value).to_bits()
}

#[inline(always)]
pub(crate) fn f32_to_bf16(value: f32) -> u16 {
    bf16::from_f32(value).to_bits()
}
