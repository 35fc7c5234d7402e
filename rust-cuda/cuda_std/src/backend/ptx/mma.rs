//! Matrix multiplication by a warp.

use super::collective::collective_asm;
use core::arch::asm;

macro_rules! mma_f32 {
    ($($name:ident = $instruction:literal;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
            let (d0, d1, d2, d3): (f32, f32, f32, f32);
            // SAFETY: the caller guarantees that all lanes of the warp call it together.
            unsafe {
                collective_asm!(
                    concat!(
                        $instruction, " {{{d0}, {d1}, {d2}, {d3}}}, {{{a0}, {a1}, {a2}, {a3}}}, {{{b0}, {b1}}}, ",
                        "{{{c0}, {c1}, {c2}, {c3}}};"
                    ),
                    d0 = lateout(reg32) d0,
                    d1 = lateout(reg32) d1,
                    d2 = lateout(reg32) d2,
                    d3 = lateout(reg32) d3,
                    a0 = in(reg32) a[0],
                    a1 = in(reg32) a[1],
                    a2 = in(reg32) a[2],
                    a3 = in(reg32) a[3],
                    b0 = in(reg32) b[0],
                    b1 = in(reg32) b[1],
                    c0 = in(reg32) c[0],
                    c1 = in(reg32) c[1],
                    c2 = in(reg32) c[2],
                    c3 = in(reg32) c[3],
                    options(nomem, nostack, preserves_flags),
                );
            }
            [d0, d1, d2, d3]
        }
    )*};
}

mma_f32! {
    mma_f16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
    mma_bf16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
    mma_tf32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32";
}

#[inline(always)]
pub(crate) fn mma_f64(a: f64, b: f64, c: [f64; 2]) -> [f64; 2] {
    let (d0, d1): (f64, f64);
    // SAFETY: the caller guarantees that all lanes of the warp call it together.
    unsafe {
        collective_asm!(
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{{d0}, {d1}}}, {{{a}}}, {{{b}}}, {{{c0}, {c1}}};",
            d0 = lateout(reg64) d0,
            d1 = lateout(reg64) d1,
            a = in(reg64) a,
            b = in(reg64) b,
            c0 = in(reg64) c[0],
            c1 = in(reg64) c[1],
            options(nomem, nostack, preserves_flags),
        );
    }
    [d0, d1]
}

#[inline(always)]
pub(crate) fn mma_f64_16(a: [f64; 4], b: [f64; 2], c: [f64; 4]) -> [f64; 4] {
    let (d0, d1, d2, d3): (f64, f64, f64, f64);
    // SAFETY: the caller guarantees that all lanes of the warp call it together.
    unsafe {
        collective_asm!(
            concat!(
                "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {{{d0}, {d1}, {d2}, {d3}}}, ",
                "{{{a0}, {a1}, {a2}, {a3}}}, {{{b0}, {b1}}}, {{{c0}, {c1}, {c2}, {c3}}};"
            ),
            d0 = lateout(reg64) d0,
            d1 = lateout(reg64) d1,
            d2 = lateout(reg64) d2,
            d3 = lateout(reg64) d3,
            a0 = in(reg64) a[0],
            a1 = in(reg64) a[1],
            a2 = in(reg64) a[2],
            a3 = in(reg64) a[3],
            b0 = in(reg64) b[0],
            b1 = in(reg64) b[1],
            c0 = in(reg64) c[0],
            c1 = in(reg64) c[1],
            c2 = in(reg64) c[2],
            c3 = in(reg64) c[3],
            options(nomem, nostack, preserves_flags),
        );
    }
    [d0, d1, d2, d3]
}

#[inline(always)]
pub(crate) fn to_tf32(x: f32) -> u32 {
    let bits: u32;
    // SAFETY: the instruction only reads and writes registers.
    unsafe {
        asm!(
            "cvt.rna.tf32.f32 {bits}, {x};",
            x = in(reg32) x,
            bits = lateout(reg32) bits,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    bits
}
