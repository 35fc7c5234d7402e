//! Matrix multiplication by four warps together, on the tensor cores of sm_90a (`wgmma`): `D = A B + C`.
//!
//! A *warpgroup* is four consecutive warps of a block; the number of the first is a multiple of four. A has 64 rows in
//! registers: each warp has the fragments of 16 rows, as in [`mma`](crate::mma), and gets their part of D. B lies in
//! shared memory. The tensor cores read it once for all four warps, so it needs no registers and a quarter of the
//! loads.
//!
//! B of [`m64k64`] consists of blocks of 8 x 8 elements, 128 bytes each. A block has the 8 elements of its first
//! column, then those of the second, and so on. The order of the blocks, for 16 columns:
//!
//! ```text
//! rows 0 to 7      0  2
//! rows 8 to 15     1  3
//! rows 16 to 23    4  6
//! rows 24 to 31    5  7
//! ```
//!
//! The instructions exist on compute capability 9.0 only.

use crate::backend;
use crate::element::Element;
use crate::memory::Shared;
use half::{bf16, f16};

/// A 16-bit float that a warpgroup multiplies: f16 or bf16.
pub trait WgmmaElement: Element {
    #[doc(hidden)]
    #[track_caller]
    unsafe fn multiply<const TILES: usize>(
        a: [[u32; 4]; 4],
        b: Shared<u32>,
        sums: [[f32; 4]; TILES],
    ) -> [[f32; 4]; TILES];
}

macro_rules! half {
    ($($half:ident = $multiply:ident;)*) => {$(
        impl WgmmaElement for $half {
            #[inline(always)]
            #[track_caller]
            unsafe fn multiply<const TILES: usize>(
                a: [[u32; 4]; 4],
                b: Shared<u32>,
                sums: [[f32; 4]; TILES],
            ) -> [[f32; 4]; TILES] {
                // SAFETY: the contract is that of `m64k64`, the only caller.
                unsafe { backend::$multiply(a, b.address(), sums) }
            }
        }
    )*};
}
half! {
    f16 = multiply_warpgroup_f16;
    bf16 = multiply_warpgroup_bf16;
}

/// Multiplies a 64 x 64 by a 64 x `8 * TILES` matrix of 16-bit floats and adds a matrix of f32. `TILES` is 6 or 16.
///
/// `a` has the lane's fragments of 4 tiles of 16 columns, `sums` those of `TILES` tiles of 8 columns. Both have the
/// layout of [`m16n8k16`](crate::mma::m16n8k16).
///
/// # Safety
///
/// - All lanes of the four warps of a warpgroup call it together. The emulator reports one that does not; on a GPU the
///   others then wait for ever, or get undefined results.
/// - `b` points to `TILES` KiB of shared memory, aligned to 16 bytes. No thread writes it meanwhile.
/// - All threads that wrote it have called [`publish`], and a barrier came after that.
#[inline(always)]
#[track_caller]
pub unsafe fn m64k64<T: WgmmaElement, const TILES: usize>(
    a: [[u32; 4]; 4],
    b: Shared<u32>,
    sums: [[f32; 4]; TILES],
) -> [[f32; 4]; TILES] {
    const { assert!(TILES == 6 || TILES == 16, "there are 6 or 16 tiles") };
    // SAFETY: the contract is that of this function.
    unsafe { T::multiply(a, b, sums) }
}

/// Multiplies a 64 x 32 by a 32 x `8 * TILES` matrix whose elements are sums of three bf16 parts. `TILES` is 6, 8 or
/// 16.
///
/// The parts of an element are numbered from 0, the largest. Starting from zero, it adds the products of these parts of
/// A and B, in this order: 0 and 2, 2 and 0, 1 and 1, 0 and 1, 1 and 0, 0 and 0.
///
/// `a[part]` has the lane's fragments of 2 tiles of 16 columns, the result those of `TILES` tiles of 8 columns. Both
/// have the layout of [`m16n8k16`](crate::mma::m16n8k16). B has its three parts one after the other, each in blocks of
/// 8 rows and `columns` columns; a block has the 8 elements of each column side by side. If `columns` is less than `8 *
/// TILES`, the missing columns read what follows the block, and their results are meaningless.
///
/// # Safety
///
/// As for [`m64k64`]. The memory at `b` also includes the missing columns of the last block.
#[inline(always)]
#[track_caller]
pub unsafe fn m64k32_in_parts<const TILES: usize>(
    a: [[[u32; 4]; 2]; 3],
    b: Shared<u32>,
    columns: u32,
) -> [[f32; 4]; TILES] {
    const {
        assert!(
            TILES == 6 || TILES == 8 || TILES == 16,
            "there are 6, 8 or 16 tiles"
        )
    };
    // SAFETY: the contract is that of this function.
    unsafe { backend::multiply_warpgroup_parts(a, b.address(), columns) }
}

/// As [`m64k32_in_parts`], but for only 16 columns of A and the first 16 rows of B, which has the same layout. `TILES`
/// is 6.
///
/// # Safety
///
/// As for [`m64k32_in_parts`].
#[inline(always)]
#[track_caller]
pub unsafe fn m64k16_in_parts<const TILES: usize>(
    a: [[[u32; 4]; 1]; 3],
    b: Shared<u32>,
    columns: u32,
) -> [[f32; 4]; TILES] {
    const { assert!(TILES == 6, "there are 6 tiles") };
    // SAFETY: the contract is that of this function.
    unsafe { backend::multiply_warpgroup_half_parts(a, b.address(), columns) }
}

/// Multiplies a 64 x 32 by a 32 x 128 matrix of f16 and, if `ADDS` is true, adds a matrix of f32.
///
/// `a` has the lane's fragments of 2 tiles of 16 columns, `sums` those of 16 tiles of 8 columns. Both have the layout
/// of [`m16n8k16`](crate::mma::m16n8k16). B has the layout of one part for [`m64k32_in_parts`] with 128 columns.
///
/// # Safety
///
/// As for [`m64k64`], with 8 KiB at `b`.
#[inline(always)]
#[track_caller]
pub unsafe fn m64k32<const ADDS: bool>(
    a: [[u32; 4]; 2],
    b: Shared<u32>,
    sums: [[f32; 4]; 16],
) -> [[f32; 4]; 16] {
    // SAFETY: the contract is that of this function.
    unsafe { backend::multiply_warpgroup_blocks::<ADDS>(a, b.address(), sums) }
}

/// A word of the upper 16 bits of `low` (in its lower half) and of `high`. It truncates two f32 to bf16.
#[inline(always)]
pub fn upper_halves(low: u32, high: u32) -> u32 {
    backend::upper_halves(low, high)
}

/// Makes the thread's writes to shared memory visible to tensor cores after the next barrier (`fence.proxy.async`).
#[inline(always)]
pub fn publish() {
    backend::publish_to_tensor_cores();
}
