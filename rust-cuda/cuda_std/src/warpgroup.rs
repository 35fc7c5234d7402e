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

/// A 64 x 32 times a 32 x `8 * TILES` matrix of f32, each element in two parts of tf32: the products of the low parts of A with the high ones of
/// B, of the high with the low, and of the high with the high, added up in this order from zero. `TILES` is 6 or 8.
///
/// `high` and `low` have the lane's fragments of four times 8 columns, the result those of `TILES` times 8 columns, each as
/// [`m16n8k8_tf32`](crate::mma::m16n8k8_tf32) has them. Of B there are first the high parts of its four times 8 rows, then the low ones, in
/// blocks of 4 x 8 of 128 bytes.
///
/// # Safety
///
/// As for [`m64k64`]; `b` is of `2 KiB * TILES`.
#[inline(always)]
#[track_caller]
pub unsafe fn m64k32_in_parts<const TILES: usize>(
    high: [[u32; 4]; 4],
    low: [[u32; 4]; 4],
    b: Shared<u32>,
) -> [[f32; 4]; TILES] {
    const { assert!(TILES == 6 || TILES == 8, "there are 6 or 8 tiles") };
    // SAFETY: the caller's contract.
    unsafe { backend::multiply_warpgroup_parts(high, low, b.address()) }
}

/// Makes what the thread has written to shared memory visible to the tensor cores, for after the next barrier
/// (`fence.proxy.async`).
#[inline(always)]
pub fn publish() {
    backend::publish_to_tensor_cores();
}
