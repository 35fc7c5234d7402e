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
    unsafe fn multiply(a: [[u32; 4]; 4], b: Shared<u32>, sums: &mut [[f32; 4]; 16]);
}

macro_rules! half {
    ($($half:ident = $multiply:ident;)*) => {$(
        impl WarpgroupHalf for $half {
            #[inline(always)]
            #[track_caller]
            unsafe fn multiply(a: [[u32; 4]; 4], b: Shared<u32>, sums: &mut [[f32; 4]; 16]) {
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

/// A 64 x 64 times a 64 x 128 matrix of 16-bit floats, added to one of f32.
///
/// `a` has the lane's fragments of four times 16 columns, `sums` those of 16 times 8 columns, each as [`m16n8k16`](crate::mma::m16n8k16)
/// has them.
///
/// # Safety
///
/// The warps of a warpgroup call it together. `b` is 16 KiB of shared memory, aligned to 16 bytes, that all threads which wrote it have
/// [published](publish), and that nobody writes meanwhile.
#[inline(always)]
#[track_caller]
pub unsafe fn m64n128k64<T: WarpgroupHalf>(
    a: [[u32; 4]; 4],
    b: Shared<u32>,
    sums: &mut [[f32; 4]; 16],
) {
    // SAFETY: the caller's contract.
    unsafe { T::multiply(a, b, sums) }
}

/// Makes what the thread has written to shared memory visible to the tensor cores, for after the next barrier
/// (`fence.proxy.async`).
#[inline(always)]
pub fn publish() {
    backend::publish_to_tensor_cores();
}
