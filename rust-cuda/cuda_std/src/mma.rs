//! Multiplication of small matrices by the 32 lanes of a warp, on tensor cores (`mma.sync`): `D = A B + C`.
//!
//! All 32 lanes of the warp must call the same function together. The emulator reports a lane that does not. On a GPU
//! the results are then undefined, or the lanes wait for ever; nothing checks it. No memory is accessed, so the
//! functions are not `unsafe`.
//!
//! Each lane passes its fragments of A, B and C, and gets its fragment of D. With `g = lane / 4` and `t = lane % 4`, it
//! holds these elements, each a pair of row and column:
//!
//! | function | elements of A and B | A | B |
//! |---|---|---|---|
//! | [`m16n8k16`] | 16 bits | `(g, 2t..)`, `(g+8, 2t..)`, `(g, 2t+8..)`, `(g+8, 2t+8..)` | `(2t.., g)`, `(2t+8.., g)` |
//! | [`m16n8k8_tf32`] | tf32 | `(g, t)`, `(g+8, t)`, `(g, t+4)`, `(g+8, t+4)` | `(t, g)`, `(t+4, g)` |
//! | [`m16n8k8`] | f64 | `(g, t)`, `(g+8, t)`, `(g, t+4)`, `(g+8, t+4)` | `(t, g)`, `(t+4, g)` |
//! | [`m8n8k4`] | f64 | `(g, t)` | `(t, g)` |
//!
//! `2t..` means two elements in one register: `2t` in the lower half, `2t + 1` in the upper half. Of C and D, a lane
//! holds `(g, 2t)`, `(g, 2t+1)`, `(g+8, 2t)` and `(g+8, 2t+1)`; with `m8n8k4`, only the first two.

use crate::backend;
use crate::element::Element;
use half::{bf16, f16};

/// A 16-bit float that tensor cores multiply: f16 or bf16.
pub trait MmaElement: Element {
    #[doc(hidden)]
    #[track_caller]
    fn m16n8k16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];
}

impl MmaElement for f16 {
    #[inline(always)]
    #[track_caller]
    fn m16n8k16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        backend::mma_f16(a, b, c)
    }
}

impl MmaElement for bf16 {
    #[inline(always)]
    #[track_caller]
    fn m16n8k16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        backend::mma_bf16(a, b, c)
    }
}

/// Multiplies a 16 x 16 by a 16 x 8 matrix of 16-bit floats and adds a matrix of f32.
///
/// Products are exact. NVIDIA does not document the sums; the hardware truncates terms some bits below the last bit of
/// the largest one, and does not round.
///
/// All lanes of the warp must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn m16n8k16<T: MmaElement>(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    T::m16n8k16(a, b, c)
}

/// Multiplies a 16 x 8 by an 8 x 8 matrix of numbers from [`to_tf32`] and adds a matrix of f32.
///
/// All lanes of the warp must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn m16n8k8_tf32(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    backend::mma_tf32(a, b, c)
}

/// Multiplies an 8 x 4 by a 4 x 8 matrix of f64 and adds a third one. Each step is a fused multiply-add, rounded to
/// nearest.
///
/// All lanes of the warp must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn m8n8k4(a: f64, b: f64, c: [f64; 2]) -> [f64; 2] {
    backend::mma_f64(a, b, c)
}

/// Multiplies a 16 x 8 by an 8 x 8 matrix of f64 and adds a third one. Each step is a fused multiply-add, rounded to
/// nearest.
///
/// It needs sm_90 and PTX 7.8. On an H200 it has twice the throughput of [`m8n8k4`].
///
/// All lanes of the warp must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn m16n8k8(a: [f64; 4], b: [f64; 2], c: [f64; 4]) -> [f64; 4] {
    backend::mma_f64_16(a, b, c)
}

/// Rounds to tf32, which has 10 bits of mantissa in the upper 19 bits of an f32: to nearest, ties away from zero.
#[inline(always)]
pub fn to_tf32(x: f32) -> u32 {
    backend::to_tf32(x)
}
