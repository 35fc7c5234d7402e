//! Multiplication of numbers that are sums of parts, with B in blocks of 8 rows and all columns.

use crate::backend::ptx::collective::collective_asm;
use core::arch::asm;
use core::array;

/// Defines a function of twelve multiplications of 64 x 16 by 16 x N.
macro_rules! multiply_parts {
    (
        $name:ident($tiles:literal) $shape:literal:
        $($register:ident)*: $($sum:ident[$tile:literal][$part:literal])*
    ) => {
        #[inline(always)]
        unsafe fn $name(
            a: [[[u32; 4]; 2]; 3],
            b: u32,
            columns: u32,
            mut sums: [[f32; 4]; $tiles],
        ) -> [[f32; 4]; $tiles] {
            macro_rules! multiplication {
                ($a:literal, $b:literal, $adds:literal) => {
                    concat!(
                        "wgmma.mma_async.sync.aligned.", $shape, "k16.f32.bf16.bf16 ", operand!($($register)*),
                        ", {{", $a, "}}, ", $b, ", ", $adds, ", 1, 1, 0;"
                    )
                };
            }
            // The matrix descriptor of the first 16 rows of B, without swizzle: the address, and the distances of
            // blocks of 8 x 8, 16 bytes for each column along k and 128 bytes along n. All are in units of 16 bytes.
            let first = (b & 0x3_ffff) >> 4 | columns << 16;
            // SAFETY: the caller upholds the contract of `m64k32_in_parts`. The instructions use their registers until
            // the wait, so the wait is part of the same assembly.
            unsafe {
                collective_asm!(
                    "{{ .reg .pred p, q;",
                    ".reg .b32 low, high;",
                    ".reg .b64 b<6>;",
                    "setp.eq.u32 p, 0, 0;",
                    "setp.ne.u32 q, 0, 0;",
                    "mov.b32 high, 8;",
                    "mov.b64 b0, {{{b}, high}};",
                    "add.u32 low, {b}, {step};",
                    "mov.b64 b1, {{low, high}};",
                    "add.u32 low, low, {step};",
                    "mov.b64 b2, {{low, high}};",
                    "add.u32 low, low, {step};",
                    "mov.b64 b3, {{low, high}};",
                    "add.u32 low, low, {step};",
                    "mov.b64 b4, {{low, high}};",
                    "add.u32 low, low, {step};",
                    "mov.b64 b5, {{low, high}};",
                    "wgmma.fence.sync.aligned;",
                    multiplication!("{x0}, {x1}, {x2}, {x3}", "b4", "q"),
                    multiplication!("{x4}, {x5}, {x6}, {x7}", "b5", "p"),
                    multiplication!("{z0}, {z1}, {z2}, {z3}", "b0", "p"),
                    multiplication!("{z4}, {z5}, {z6}, {z7}", "b1", "p"),
                    multiplication!("{y0}, {y1}, {y2}, {y3}", "b2", "p"),
                    multiplication!("{y4}, {y5}, {y6}, {y7}", "b3", "p"),
                    multiplication!("{x0}, {x1}, {x2}, {x3}", "b2", "p"),
                    multiplication!("{x4}, {x5}, {x6}, {x7}", "b3", "p"),
                    multiplication!("{y0}, {y1}, {y2}, {y3}", "b0", "p"),
                    multiplication!("{y4}, {y5}, {y6}, {y7}", "b1", "p"),
                    multiplication!("{x0}, {x1}, {x2}, {x3}", "b0", "p"),
                    multiplication!("{x4}, {x5}, {x6}, {x7}", "b1", "p"),
                    "wgmma.commit_group.sync.aligned;",
                    "wgmma.wait_group.sync.aligned 0; }}",
                    b = in(reg32) first,
                    step = in(reg32) 2 * columns,
                    x0 = in(reg32) a[0][0][0],
                    x1 = in(reg32) a[0][0][1],
                    x2 = in(reg32) a[0][0][2],
                    x3 = in(reg32) a[0][0][3],
                    x4 = in(reg32) a[0][1][0],
                    x5 = in(reg32) a[0][1][1],
                    x6 = in(reg32) a[0][1][2],
                    x7 = in(reg32) a[0][1][3],
                    y0 = in(reg32) a[1][0][0],
                    y1 = in(reg32) a[1][0][1],
                    y2 = in(reg32) a[1][0][2],
                    y3 = in(reg32) a[1][0][3],
                    y4 = in(reg32) a[1][1][0],
                    y5 = in(reg32) a[1][1][1],
                    y6 = in(reg32) a[1][1][2],
                    y7 = in(reg32) a[1][1][3],
                    z0 = in(reg32) a[2][0][0],
                    z1 = in(reg32) a[2][0][1],
                    z2 = in(reg32) a[2][0][2],
                    z3 = in(reg32) a[2][0][3],
                    z4 = in(reg32) a[2][1][0],
                    z5 = in(reg32) a[2][1][1],
                    z6 = in(reg32) a[2][1][2],
                    z7 = in(reg32) a[2][1][3],
                    $($sum = inout(reg32) sums[$tile][$part],)*
                    options(nostack),
                );
            }
            sums
        }
    };
}

/// Defines a function of six multiplications of 64 x 16 by 16 x N.
macro_rules! multiply_half_parts {
    (
        $name:ident($tiles:literal) $shape:literal:
        $($register:ident)*: $($sum:ident[$tile:literal][$part:literal])*
    ) => {
        #[inline(always)]
        unsafe fn $name(
            a: [[[u32; 4]; 1]; 3],
            b: u32,
            columns: u32,
            mut sums: [[f32; 4]; $tiles],
        ) -> [[f32; 4]; $tiles] {
            macro_rules! multiplication {
                ($a:literal, $b:literal, $adds:literal) => {
                    concat!(
                        "wgmma.mma_async.sync.aligned.", $shape, "k16.f32.bf16.bf16 ", operand!($($register)*),
                        ", {{", $a, "}}, ", $b, ", ", $adds, ", 1, 1, 0;"
                    )
                };
            }
            // The matrix descriptor, as in `multiply_parts`.
            let first = (b & 0x3_ffff) >> 4 | columns << 16;
            // SAFETY: as in `multiply_parts`.
            unsafe {
                collective_asm!(
                    "{{ .reg .pred p, q;",
                    ".reg .b32 low, high;",
                    ".reg .b64 b<3>;",
                    "setp.eq.u32 p, 0, 0;",
                    "setp.ne.u32 q, 0, 0;",
                    "mov.b32 high, 8;",
                    "mov.b64 b0, {{{b}, high}};",
                    "add.u32 low, {b}, {step};",
                    "mov.b64 b1, {{low, high}};",
                    "add.u32 low, low, {step};",
                    "mov.b64 b2, {{low, high}};",
                    "wgmma.fence.sync.aligned;",
                    multiplication!("{x0}, {x1}, {x2}, {x3}", "b2", "q"),
                    multiplication!("{z0}, {z1}, {z2}, {z3}", "b0", "p"),
                    multiplication!("{y0}, {y1}, {y2}, {y3}", "b1", "p"),
                    multiplication!("{x0}, {x1}, {x2}, {x3}", "b1", "p"),
                    multiplication!("{y0}, {y1}, {y2}, {y3}", "b0", "p"),
                    multiplication!("{x0}, {x1}, {x2}, {x3}", "b0", "p"),
                    "wgmma.commit_group.sync.aligned;",
                    "wgmma.wait_group.sync.aligned 0; }}",
                    b = in(reg32) first,
                    step = in(reg32) 4 * columns,
                    x0 = in(reg32) a[0][0][0],
                    x1 = in(reg32) a[0][0][1],
                    x2 = in(reg32) a[0][0][2],
                    x3 = in(reg32) a[0][0][3],
                    y0 = in(reg32) a[1][0][0],
                    y1 = in(reg32) a[1][0][1],
                    y2 = in(reg32) a[1][0][2],
                    y3 = in(reg32) a[1][0][3],
                    z0 = in(reg32) a[2][0][0],
                    z1 = in(reg32) a[2][0][1],
                    z2 = in(reg32) a[2][0][2],
                    z3 = in(reg32) a[2][0][3],
                    $($sum = inout(reg32) sums[$tile][$part],)*
                    options(nostack),
                );
            }
            sums
        }
    };
}

with_sums! { 6 multiply_half_parts multiply_half_parts_48 "m64n48" }

#[inline(always)]
pub(crate) unsafe fn multiply_warpgroup_half_parts<const TILES: usize>(
    a: [[[u32; 4]; 1]; 3],
    b: u32,
    columns: u32,
) -> [[f32; 4]; TILES] {
    // The first multiplication writes the sums and does not read them.
    let sums = [[0.0; 4]; 6];
    // SAFETY: the contract is that of this function.
    let sums = unsafe { multiply_half_parts_48(a, b, columns, sums) };
    array::from_fn(|tile| sums[tile % 6])
}

with_sums! { 6 multiply_parts multiply_parts_48 "m64n48" }
with_sums! { 8 multiply_parts multiply_parts_64 "m64n64" }
with_sums! { 16 multiply_parts multiply_parts_128 "m64n128" }

#[inline(always)]
pub(crate) unsafe fn multiply_warpgroup_parts<const TILES: usize>(
    a: [[[u32; 4]; 2]; 3],
    b: u32,
    columns: u32,
) -> [[f32; 4]; TILES] {
    // The first multiplication writes the sums and does not read them.
    let sums = [[0.0; 4]; 16];
    let of = |tile: usize| sums[tile];
    // SAFETY: the contract is that of this function.
    unsafe {
        match TILES {
            6 => {
                let sums = multiply_parts_48(a, b, columns, array::from_fn(of));
                array::from_fn(|tile| sums[tile % 6])
            }
            8 => {
                let sums = multiply_parts_64(a, b, columns, array::from_fn(of));
                array::from_fn(|tile| sums[tile % 8])
            }
            _ => {
                let sums = multiply_parts_128(a, b, columns, sums);
                array::from_fn(|tile| sums[tile % 16])
            }
        }
    }
}

/// Defines a function of two multiplications of 64 x 16 by 16 x N. With `inout` and the predicate `p` it adds to the
/// sums; with `out` and `q` it starts from zero.
macro_rules! multiply_blocks {
    (
        $name:ident($tiles:literal) $shape:literal $sums:ident $adds:literal:
        $($register:ident)*: $($sum:ident[$tile:literal][$part:literal])*
    ) => {
        #[inline(always)]
        unsafe fn $name(a: [[u32; 4]; 2], b: u32, mut sums: [[f32; 4]; $tiles]) -> [[f32; 4]; $tiles] {
            macro_rules! multiplication {
                ($a:literal, $b:literal, $added:literal) => {
                    concat!(
                        "wgmma.mma_async.sync.aligned.", $shape, "k16.f32.f16.f16 ", operand!($($register)*),
                        ", {{", $a, "}}, ", $b, ", ", $added, ", 1, 1, 0;"
                    )
                };
            }
            // The matrix descriptor, as in `multiply_parts`, for blocks of `8 * $tiles` columns.
            let first = (b & 0x3_ffff) >> 4 | 8 * $tiles << 16;
            // SAFETY: as in `multiply_parts`.
            unsafe {
                collective_asm!(
                    "{{ .reg .pred p, q;",
                    ".reg .b32 low, high;",
                    ".reg .b64 b<2>;",
                    "setp.eq.u32 p, 0, 0;",
                    "setp.ne.u32 q, 0, 0;",
                    "mov.b32 high, 8;",
                    "mov.b64 b0, {{{b}, high}};",
                    "add.u32 low, {b}, {step};",
                    "mov.b64 b1, {{low, high}};",
                    "wgmma.fence.sync.aligned;",
                    multiplication!("{x0}, {x1}, {x2}, {x3}", "b0", $adds),
                    multiplication!("{x4}, {x5}, {x6}, {x7}", "b1", "p"),
                    "wgmma.commit_group.sync.aligned;",
                    "wgmma.wait_group.sync.aligned 0; }}",
                    b = in(reg32) first,
                    step = const 16 * $tiles,
                    x0 = in(reg32) a[0][0],
                    x1 = in(reg32) a[0][1],
                    x2 = in(reg32) a[0][2],
                    x3 = in(reg32) a[0][3],
                    x4 = in(reg32) a[1][0],
                    x5 = in(reg32) a[1][1],
                    x6 = in(reg32) a[1][2],
                    x7 = in(reg32) a[1][3],
                    $($sum = $sums(reg32) sums[$tile][$part],)*
                    options(nostack),
                );
            }
            sums
        }
    };
}

with_sums! { 16 multiply_blocks add_blocks_128 "m64n128" inout "p" }
with_sums! { 16 multiply_blocks blocks_128 "m64n128" out "q" }

#[inline(always)]
pub(crate) unsafe fn multiply_warpgroup_blocks<const ADDS: bool>(
    a: [[u32; 4]; 2],
    b: u32,
    sums: [[f32; 4]; 16],
) -> [[f32; 4]; 16] {
    // SAFETY: the contract is that of this function.
    unsafe {
        if ADDS {
            add_blocks_128(a, b, sums)
        } else {
            blocks_128(a, b, sums)
        }
    }
}

#[inline(always)]
pub(crate) fn upper_halves(low: u32, high: u32) -> u32 {
    let halves;
    // SAFETY: the instruction only reads and writes registers.
    unsafe {
        asm!(
            "prmt.b32 {halves}, {low}, {high}, 0x7632;",
            halves = out(reg32) halves,
            low = in(reg32) low,
            high = in(reg32) high,
            options(pure, nomem, nostack),
        );
    }
    halves
}
