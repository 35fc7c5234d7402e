//! Floating-point instructions.

use core::arch::asm;

macro_rules! fma {
    ($($name:ident($float:ty, $register:ident) = $instruction:literal;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(a: $float, b: $float, c: $float) -> $float {
            let result: $float;
            // SAFETY: the instruction only reads and writes registers.
            unsafe {
                asm!(
                    concat!($instruction, " {result}, {a}, {b}, {c};"),
                    a = in($register) a,
                    b = in($register) b,
                    c = in($register) c,
                    result = lateout($register) result,
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
            result
        }
    )*};
}

fma! {
    fma_f32(f32, reg32) = "fma.rn.f32";
    fma_f64(f64, reg64) = "fma.rn.f64";
}

macro_rules! binary {
    ($($name:ident($float:ty, $register:ident) -> ($output:ty, $out_register:ident) = $instruction:literal;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(a: $float, b: $float) -> $output {
            let result: $output;
            // SAFETY: the instruction only reads and writes registers.
            unsafe {
                asm!(
                    concat!($instruction, " {result}, {a}, {b};"),
                    a = in($register) a,
                    b = in($register) b,
                    result = lateout($out_register) result,
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
            result
        }
    )*};
}

binary! {
    maximum_f32(f32, reg32) -> (f32, reg32) = "max.NaN.f32";
    max_f64(f64, reg64) -> (f64, reg64) = "max.f64";
    // The first operand becomes the upper half.
    f32_to_f16x2(f32, reg32) -> (u32, reg32) = "cvt.rn.f16x2.f32";
    f32_to_bf16x2(f32, reg32) -> (u32, reg32) = "cvt.rn.bf16x2.f32";
}

/// PTX has no `max.NaN.f64`. `max.f64` returns 0 for 0 and -0, but the number for a number and NaN.
#[inline(always)]
pub(crate) fn maximum_f64(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        max_f64(a, b)
    }
}

macro_rules! unary {
    ($($name:ident($input:ty, $in_register:ident) -> ($output:ty, $out_register:ident) = $instruction:literal;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(x: $input) -> $output {
            let result: $output;
            // SAFETY: the instruction only reads and writes registers.
            unsafe {
                asm!(
                    concat!($instruction, " {result}, {x};"),
                    x = in($in_register) x,
                    result = lateout($out_register) result,
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
            result
        }
    )*};
}

unary! {
    sqrt_f32(f32, reg32) -> (f32, reg32) = "sqrt.rn.f32";
    sqrt_f64(f64, reg64) -> (f64, reg64) = "sqrt.rn.f64";
    fast_exp2(f32, reg32) -> (f32, reg32) = "ex2.approx.ftz.f32";
    fast_log2(f32, reg32) -> (f32, reg32) = "lg2.approx.ftz.f32";
    f16_to_f32(u16, reg16) -> (f32, reg32) = "cvt.f32.f16";
    f32_to_f16(f32, reg32) -> (u16, reg16) = "cvt.rn.f16.f32";
    f32_to_bf16(f32, reg32) -> (u16, reg16) = "cvt.rn.bf16.f32";
}

/// A bf16 is the upper half of an f32. Inline assembly hides that from the compiler, which would move a plain shift up
/// to the load and then need twice as many registers.
#[inline(always)]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    let result: f32;
    // SAFETY: the instruction only reads and writes registers.
    unsafe {
        asm!(
            "mov.b32 {result}, {{{zero}, {bits}}};",
            zero = in(reg16) 0_u16,
            bits = in(reg16) bits,
            result = lateout(reg32) result,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    result
}
