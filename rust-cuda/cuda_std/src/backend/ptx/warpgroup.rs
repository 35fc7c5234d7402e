//! Matrix multiplication by a warpgroup.

use super::collective::collective_asm;
use core::arch::asm;
use core::array;

/// Calls a macro that defines a multiplication by 6, 8 or 16 tiles of 8 columns, with the registers of a lane's sums:
/// first their names, then each name with its tile and its element in the tile.
macro_rules! with_sums {
    (6 $multiply:ident $name:ident $($arguments:tt)*) => {
        $multiply! {
            $name(6) $($arguments)*:
                s0 s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 s12 s13 s14 s15 s16 s17 s18 s19 s20 s21 s22 s23:
                s0[0][0] s1[0][1] s2[0][2] s3[0][3] s4[1][0] s5[1][1] s6[1][2] s7[1][3] s8[2][0] s9[2][1] s10[2][2]
                s11[2][3] s12[3][0] s13[3][1] s14[3][2] s15[3][3] s16[4][0] s17[4][1] s18[4][2] s19[4][3] s20[5][0]
                s21[5][1] s22[5][2] s23[5][3]
        }
    };
    (8 $multiply:ident $name:ident $($arguments:tt)*) => {
        $multiply! {
            $name(8) $($arguments)*:
                s0 s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 s12 s13 s14 s15 s16 s17 s18 s19 s20 s21 s22 s23 s24 s25 s26
                s27 s28 s29 s30 s31:
                s0[0][0] s1[0][1] s2[0][2] s3[0][3] s4[1][0] s5[1][1] s6[1][2] s7[1][3] s8[2][0] s9[2][1] s10[2][2]
                s11[2][3] s12[3][0] s13[3][1] s14[3][2] s15[3][3] s16[4][0] s17[4][1] s18[4][2] s19[4][3] s20[5][0]
                s21[5][1] s22[5][2] s23[5][3] s24[6][0] s25[6][1] s26[6][2] s27[6][3] s28[7][0] s29[7][1] s30[7][2]
                s31[7][3]
        }
    };
    (16 $multiply:ident $name:ident $($arguments:tt)*) => {
        $multiply! {
            $name(16) $($arguments)*:
                s0 s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 s12 s13 s14 s15 s16 s17 s18 s19 s20 s21 s22 s23 s24 s25 s26
                s27 s28 s29 s30 s31 s32 s33 s34 s35 s36 s37 s38 s39 s40 s41 s42 s43 s44 s45 s46 s47 s48 s49 s50 s51
                s52 s53 s54 s55 s56 s57 s58 s59 s60 s61 s62 s63:
                s0[0][0] s1[0][1] s2[0][2] s3[0][3] s4[1][0] s5[1][1] s6[1][2] s7[1][3] s8[2][0] s9[2][1] s10[2][2]
                s11[2][3] s12[3][0] s13[3][1] s14[3][2] s15[3][3] s16[4][0] s17[4][1] s18[4][2] s19[4][3] s20[5][0]
                s21[5][1] s22[5][2] s23[5][3] s24[6][0] s25[6][1] s26[6][2] s27[6][3] s28[7][0] s29[7][1] s30[7][2]
                s31[7][3] s32[8][0] s33[8][1] s34[8][2] s35[8][3] s36[9][0] s37[9][1] s38[9][2] s39[9][3] s40[10][0]
                s41[10][1] s42[10][2] s43[10][3] s44[11][0] s45[11][1] s46[11][2] s47[11][3] s48[12][0] s49[12][1]
                s50[12][2] s51[12][3] s52[13][0] s53[13][1] s54[13][2] s55[13][3] s56[14][0] s57[14][1] s58[14][2]
                s59[14][3] s60[15][0] s61[15][1] s62[15][2] s63[15][3]
        }
    };
}

/// The registers of the sums in the syntax of PTX.
macro_rules! operand {
    ($first:ident $($register:ident)*) => {
        concat!("{{{", stringify!($first), "}", $(", {", stringify!($register), "}",)* "}}")
    };
}

mod parts;

pub(crate) use parts::*;

/// Defines a function of four multiplications of 64 x 16 by 16 x N.
///
/// # Safety
///
/// As for [`m64k64`](crate::warpgroup::m64k64).
macro_rules! multiply {
    (
        $name:ident($tiles:literal) $shape:literal $types:literal:
        $($register:ident)*: $($sum:ident[$tile:literal][$part:literal])*
    ) => {
        #[inline(always)]
        unsafe fn $name(a: [[u32; 4]; 4], b: u32, mut sums: [[f32; 4]; $tiles]) -> [[f32; 4]; $tiles] {
            macro_rules! multiplication {
                ($a:literal, $b:literal) => {
                    concat!(
                        "wgmma.mma_async.sync.aligned.", $shape, "k16.f32.", $types, " ", operand!($($register)*),
                        ", {{", $a, "}}, ", $b, ", p, 1, 1, 0;"
                    )
                };
            }
            // The matrix descriptor of the first 16 rows of B, without swizzle: the address, and the distances of
            // blocks of 8 x 8, 128 bytes along k and 256 along n. All are in units of 16 bytes.
            let first = (b & 0x3_ffff) >> 4 | 8 << 16;
            // SAFETY: the caller upholds the contract. The instructions use their registers until the wait, so the wait
            // is part of the same assembly.
            unsafe {
                collective_asm!(
                    "{{ .reg .pred p;",
                    ".reg .b32 low, high;",
                    ".reg .b64 b<4>;",
                    "setp.eq.u32 p, 0, 0;",
                    "mov.b32 high, 16;",
                    "mov.b64 b0, {{{b}, high}};",
                    "add.u32 low, {b}, {step};",
                    "mov.b64 b1, {{low, high}};",
                    "add.u32 low, low, {step};",
                    "mov.b64 b2, {{low, high}};",
                    "add.u32 low, low, {step};",
                    "mov.b64 b3, {{low, high}};",
                    "wgmma.fence.sync.aligned;",
                    multiplication!("{a0}, {a1}, {a2}, {a3}", "b0"),
                    multiplication!("{a4}, {a5}, {a6}, {a7}", "b1"),
                    multiplication!("{a8}, {a9}, {a10}, {a11}", "b2"),
                    multiplication!("{a12}, {a13}, {a14}, {a15}", "b3"),
                    "wgmma.commit_group.sync.aligned;",
                    // A line with nothing but a brace would end the kernel for those that take the text apart.
                    "wgmma.wait_group.sync.aligned 0; }}",
                    b = in(reg32) first,
                    step = const 16 * $tiles,
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
                    $($sum = inout(reg32) sums[$tile][$part],)*
                    options(nostack),
                );
            }
            sums
        }
    };
}

with_sums! { 6 multiply multiply_f16_48 "m64n48" "f16.f16" }
with_sums! { 6 multiply multiply_bf16_48 "m64n48" "bf16.bf16" }
with_sums! { 16 multiply multiply_f16_128 "m64n128" "f16.f16" }
with_sums! { 16 multiply multiply_bf16_128 "m64n128" "bf16.bf16" }

/// Calls the function for 6 tiles, or else the one for 16.
macro_rules! by_tiles {
    ($few:ident, $many:ident, ($($argument:expr),*), $sums:expr) => {{
        if TILES == 6 {
            let sums = $few($($argument,)* array::from_fn(|tile| $sums[tile % TILES]));
            array::from_fn(|tile| sums[tile % 6])
        } else {
            let sums = $many($($argument,)* array::from_fn(|tile| $sums[tile % TILES]));
            array::from_fn(|tile| sums[tile])
        }
    }};
}

macro_rules! half {
    ($($name:ident = $few:ident, $many:ident;)*) => {$(
        #[inline(always)]
        pub(crate) unsafe fn $name<const TILES: usize>(
            a: [[u32; 4]; 4],
            b: u32,
            sums: [[f32; 4]; TILES],
        ) -> [[f32; 4]; TILES] {
            // SAFETY: the contract is that of `multiply`.
            unsafe { by_tiles!($few, $many, (a, b), sums) }
        }
    )*};
}

half! {
    multiply_warpgroup_f16 = multiply_f16_48, multiply_f16_128;
    multiply_warpgroup_bf16 = multiply_bf16_48, multiply_bf16_128;
}

#[inline(always)]
pub(crate) fn publish_to_tensor_cores() {
    // SAFETY: a fence has no preconditions; the assembly clobbers memory.
    unsafe { asm!("fence.proxy.async.shared::cta;", options(nostack)) }
}
