//! Floating-point instructions.

use core::arch::asm;

macro_rules! fma {
    ($($name:ident($float:ty, $register:ident) = $instruction:literal;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(a: $float, b: $float, c: $float) -> $float {
            let result: $float;
            // SAFETY: arithmetic on registers.
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

macro_rules! unary {
    ($($name:ident($input:ty, $in_register:ident) -> ($output:ty, $out_register:ident) = $instruction:literal;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(x: $input) -> $output {
            let result: $output;
            // SAFETY: arithmetic on registers.
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
