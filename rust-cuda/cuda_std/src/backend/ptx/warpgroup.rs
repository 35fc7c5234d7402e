//! Matrix products of a warpgroup.

use core::arch::asm;

/// The sums of 64 x 128 that a lane has, as the instruction names them.
macro_rules! sums {
    () => {
        "{{{s0}, {s1}, {s2}, {s3}, {s4}, {s5}, {s6}, {s7}, {s8}, {s9}, {s10}, {s11}, {s12}, {s13}, {s14}, {s15}, \
             {s16}, {s17}, {s18}, {s19}, {s20}, {s21}, {s22}, {s23}, {s24}, {s25}, {s26}, {s27}, {s28}, {s29}, {s30}, {s31}, \
             {s32}, {s33}, {s34}, {s35}, {s36}, {s37}, {s38}, {s39}, {s40}, {s41}, {s42}, {s43}, {s44}, {s45}, {s46}, {s47}, \
             {s48}, {s49}, {s50}, {s51}, {s52}, {s53}, {s54}, {s55}, {s56}, {s57}, {s58}, {s59}, {s60}, {s61}, {s62}, {s63}}}"
    };
}

/// One multiplication of 64 x 16 by 16 x 128, the operands' registers by name.
macro_rules! multiplication {
    ($types:literal, $a:literal, $b:literal) => {
        concat!(
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.",
            $types,
            " ",
            sums!(),
            ", {{",
            $a,
            "}}, ",
            $b,
            ", p, 1, 1, 0;"
        )
    };
}

macro_rules! multiply {
    ($($name:ident = $types:literal;)*) => {$(
        #[inline(always)]
        pub(crate) unsafe fn $name(a: [[u32; 4]; 4], b: u32, sums: &mut [[f32; 4]; 16]) {
            // The matrix descriptor of the first 16 rows of B: the address, 128 bytes from a block of 8 x 8 to the next along k and 256 along
            // n, all in units of 16 bytes; no swizzle.
            let first = (b & 0x3_ffff) >> 4 | 8 << 16;
            // SAFETY: the caller's contract. Registers that the instructions use belong to them until the wait, which is therefore part of
            // the same assembly.
            unsafe {
                asm!(
                    "{{ .reg .pred p;",
                    ".reg .b32 low, high;",
                    ".reg .b64 b0, b1, b2, b3;",
                    "setp.eq.u32 p, 0, 0;",
                    "mov.b32 high, 16;",
                    "mov.b64 b0, {{{b}, high}};",
                    "add.u32 low, {b}, 256;",
                    "mov.b64 b1, {{low, high}};",
                    "add.u32 low, {b}, 512;",
                    "mov.b64 b2, {{low, high}};",
                    "add.u32 low, {b}, 768;",
                    "mov.b64 b3, {{low, high}};",
                    "wgmma.fence.sync.aligned;",
                    multiplication!($types, "{a0}, {a1}, {a2}, {a3}", "b0"),
                    multiplication!($types, "{a4}, {a5}, {a6}, {a7}", "b1"),
                    multiplication!($types, "{a8}, {a9}, {a10}, {a11}", "b2"),
                    multiplication!($types, "{a12}, {a13}, {a14}, {a15}", "b3"),
                    "wgmma.commit_group.sync.aligned;",
                    // A line with nothing but a brace would end the kernel for those that take the text apart.
                    "wgmma.wait_group.sync.aligned 0; }}",
                    b = in(reg32) first,
                    a0 = in(reg32) a[0][0],
                    a1 = in(reg32) a[0][1],
                    a2 = in(reg32) a[0][2],
                    a3 = in(reg32) a[0][3],
                    a4 = in(reg32) a[1][0],
                    a5 = in(reg32) a[1][1],
                    a6 = in(reg32) a[1][2],
                    a7 = in(reg32) a[1][3],
                    a8 = in(reg32) a[2][0],
                    a9 = in(reg32) a[2][1],
                    a10 = in(reg32) a[2][2],
                    a11 = in(reg32) a[2][3],
                    a12 = in(reg32) a[3][0],
                    a13 = in(reg32) a[3][1],
                    a14 = in(reg32) a[3][2],
                    a15 = in(reg32) a[3][3],
                    s0 = inout(reg32) sums[0][0],
                    s1 = inout(reg32) sums[0][1],
                    s2 = inout(reg32) sums[0][2],
                    s3 = inout(reg32) sums[0][3],
                    s4 = inout(reg32) sums[1][0],
                    s5 = inout(reg32) sums[1][1],
                    s6 = inout(reg32) sums[1][2],
                    s7 = inout(reg32) sums[1][3],
                    s8 = inout(reg32) sums[2][0],
                    s9 = inout(reg32) sums[2][1],
                    s10 = inout(reg32) sums[2][2],
                    s11 = inout(reg32) sums[2][3],
                    s12 = inout(reg32) sums[3][0],
                    s13 = inout(reg32) sums[3][1],
                    s14 = inout(reg32) sums[3][2],
                    s15 = inout(reg32) sums[3][3],
                    s16 = inout(reg32) sums[4][0],
                    s17 = inout(reg32) sums[4][1],
                    s18 = inout(reg32) sums[4][2],
                    s19 = inout(reg32) sums[4][3],
                    s20 = inout(reg32) sums[5][0],
                    s21 = inout(reg32) sums[5][1],
                    s22 = inout(reg32) sums[5][2],
                    s23 = inout(reg32) sums[5][3],
                    s24 = inout(reg32) sums[6][0],
                    s25 = inout(reg32) sums[6][1],
                    s26 = inout(reg32) sums[6][2],
                    s27 = inout(reg32) sums[6][3],
                    s28 = inout(reg32) sums[7][0],
                    s29 = inout(reg32) sums[7][1],
                    s30 = inout(reg32) sums[7][2],
                    s31 = inout(reg32) sums[7][3],
                    s32 = inout(reg32) sums[8][0],
                    s33 = inout(reg32) sums[8][1],
                    s34 = inout(reg32) sums[8][2],
                    s35 = inout(reg32) sums[8][3],
                    s36 = inout(reg32) sums[9][0],
                    s37 = inout(reg32) sums[9][1],
                    s38 = inout(reg32) sums[9][2],
                    s39 = inout(reg32) sums[9][3],
                    s40 = inout(reg32) sums[10][0],
                    s41 = inout(reg32) sums[10][1],
                    s42 = inout(reg32) sums[10][2],
                    s43 = inout(reg32) sums[10][3],
                    s44 = inout(reg32) sums[11][0],
                    s45 = inout(reg32) sums[11][1],
                    s46 = inout(reg32) sums[11][2],
                    s47 = inout(reg32) sums[11][3],
                    s48 = inout(reg32) sums[12][0],
                    s49 = inout(reg32) sums[12][1],
                    s50 = inout(reg32) sums[12][2],
                    s51 = inout(reg32) sums[12][3],
                    s52 = inout(reg32) sums[13][0],
                    s53 = inout(reg32) sums[13][1],
                    s54 = inout(reg32) sums[13][2],
                    s55 = inout(reg32) sums[13][3],
                    s56 = inout(reg32) sums[14][0],
                    s57 = inout(reg32) sums[14][1],
                    s58 = inout(reg32) sums[14][2],
                    s59 = inout(reg32) sums[14][3],
                    s60 = inout(reg32) sums[15][0],
                    s61 = inout(reg32) sums[15][1],
                    s62 = inout(reg32) sums[15][2],
                    s63 = inout(reg32) sums[15][3],
                    options(nostack),
                );
            }
        }
    )*};
}

multiply! {
    multiply_warpgroup_f16 = "f16.f16";
    multiply_warpgroup_bf16 = "bf16.bf16";
}

#[inline(always)]
pub(crate) fn publish_to_tensor_cores() {
    // SAFETY: no preconditions; memory is clobbered.
    unsafe { asm!("fence.proxy.async.shared::cta;", options(nostack)) }
}
