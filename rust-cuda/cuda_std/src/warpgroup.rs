//! Products of matrices by four warps together, on the tensor cores of sm_90a (`wgmma`): `D = A B + C`.
//!
//! A *warpgroup* is four neighbouring warps of a block, the first of them a multiple of four. A, 64 rows, lies in the registers of its lanes:
//! each warp has 16 rows as in [`mma`](crate::mma), and gets their part of the result. B lies in shared memory, where all four read it
//! at once, so that it costs a quarter of the loads that [`mma`](crate::mma) takes for it, and no registers.
//!
//! B is in blocks of 8 x 8, a column's 8 elements after another's, 128 bytes in all: first the two blocks below each other of 16 rows and 8
//! columns, then those to the right, then those of the next 16 rows.
//!
//! The instructions are of sm_90a, compute capability 9.0 and no other.

use crate::backend;
use crate::element::Element;
use crate::memory::Shared;
use half::{bf16, f16};

/// A 16-bit float that a warpgroup multiplies: f16 and bf16.
pub trait WarpgroupHalf: Element {
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
        impl WarpgroupHalf for $half {
            #[inline(always)]
            #[track_caller]
            unsafe fn multiply<const TILES: usize>(
                a: [[u32; 4]; 4],
                b: Shared<u32>,
                sums: [[f32; 4]; TILES],
            ) -> [[f32; 4]; TILES] {
                // SAFETY: the caller's contract.
                unsafe { backend::$multiply(a, b.address(), sums) }
            }
        }
    )*};
}
half! {
    f16 = multiply_warpgroup_f16;
    bf16 = multiply_warpgroup_bf16;
}

/// A 64 x 64 times a 64 x `8 * TILES` matrix of 16-bit floats, added to one of f32. `TILES` is 6 or 16.
///
/// `a` has the lane's fragments of four times 16 columns, `sums` those of `TILES` times 8 columns, each as
/// [`m16n8k16`](crate::mma::m16n8k16) has them.
///
/// # Safety
///
/// The warps of a warpgroup call it together. `b` is `1 KiB * TILES` of shared memory, aligned to 16 bytes, that all threads which wrote it
/// have [published](publish), and that nobody writes meanwhile.
#[inline(always)]
#[track_caller]
pub unsafe fn m64k64<T: WarpgroupHalf, const TILES: usize>(
    a: [[u32; 4]; 4],
    b: Shared<u32>,
    sums: [[f32; 4]; TILES],
) -> [[f32; 4]; TILES] {
    const { assert!(TILES == 6 || TILES == 16, "there are 6 or 16 tiles") };
    // SAFETY: the caller's contract.
    unsafe { T::multiply(a, b, sums) }
}

/// A 64 x 32 times a 32 x `8 * TILES` matrix, each element as the sum of three bf16, the greatest first: the products of the first part of A with
/// the third of B, of the third with the first, of the second with the second, of the first with the second, of the second with the first, and of
/// the first with the first, added up in this order from zero. `TILES` is 6, 8 or 16.
///
/// `a` has of each part the lane's fragments of two times 16 columns, the result those of `TILES` times 8 columns, each as
/// [`m16n8k16`](crate::mma::m16n8k16) has them. Of B there are the parts one after another, each in blocks of 8 rows, in which a column's 8
/// elements come after another's. A block has `columns` of them: where these are fewer than `8 * TILES`, what comes after the block is
/// multiplied in the place of those that it lacks, and their results are of no use.
///
/// # Safety
///
/// As for [`m64k64`]; `b` is as long as its blocks, and as the columns that the last one lacks.
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
    // SAFETY: the caller's contract.
    unsafe { backend::multiply_warpgroup_parts(a, b.address(), columns) }
}

/// As [`m64k32_in_parts`] with B of the same form, but the first 16 columns of A and rows of B alone. `TILES` is 6.
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
    // SAFETY: the caller's contract.
    unsafe { backend::multiply_warpgroup_half_parts(a, b.address(), columns) }
}

/// A 64 x 32 times a 32 x 128 matrix of f16, added to one of f32, or to zero where `ADDS` is false.
///
/// `a` has the lane's fragments of two times 16 columns, `sums` those of 16 times 8 columns, each as [`m16n8k16`](crate::mma::m16n8k16) has
/// them. B is as one part is for [`m64k32_in_parts`] with 128 columns.
///
/// # Safety
///
/// As for [`m64k64`]; `b` is of 8 KiB.
#[inline(always)]
#[track_caller]
pub unsafe fn m64k32<const ADDS: bool>(
    a: [[u32; 4]; 2],
    b: Shared<u32>,
    sums: [[f32; 4]; 16],
) -> [[f32; 4]; 16] {
    // SAFETY: the caller's contract.
    unsafe { backend::multiply_warpgroup_blocks::<ADDS>(a, b.address(), sums) }
}

/// The upper 16 bits of two words in one: those of `low` are its lower half. So two f32 become bf16, cut off.
#[inline(always)]
pub fn upper_halves(low: u32, high: u32) -> u32 {
    backend::upper_halves(low, high)
}

/// Makes what the thread has written to shared memory visible to the tensor cores, for after the next barrier
/// (`fence.proxy.async`).
#[inline(always)]
pub fn publish() {
    backend::publish_to_tensor_cores();
}
