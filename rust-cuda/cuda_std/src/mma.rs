//! Products of small matrices by the 32 lanes of a warp together, on tensor cores (`mma.sync`): `D = A B + C`.
//!
//! Each lane brings its fragments of A, B and C and takes its fragment of D away. With `g = lane / 4` and `t = lane % 4`:
//!
//! | shape m x n x k | A, row by column | B, row by column | C and D, row by column |
//! |---|---|---|---|
//! | [16 x 8 x 16](m16n8k16), 16 bits | `(g, 2t..)`, `(g + 8, 2t..)`, `(g, 2t + 8..)`, `(g + 8, 2t + 8..)` | `(2t.., g)`, `(2t + 8.., g)` | `(g, 2t)`, `(g, 2t + 1)`, `(g + 8, 2t)`, `(g + 8, 2t + 1)` |
//! | [16 x 8 x 8](m16n8k8_tf32), tf32 | `(g, t)`, `(g + 8, t)`, `(g, t + 4)`, `(g + 8, t + 4)` | `(t, g)`, `(t + 4, g)` | as above |
//! | [8 x 8 x 4](m8n8k4), f64 | `(g, t)` | `(t, g)` | `(g, 2t)`, `(g, 2t + 1)` |
//! | [16 x 8 x 8](m16n8k8), f64, from sm_90 on | `(g, t)`, `(g + 8, t)`, `(g, t + 4)`, `(g + 8, t + 4)` | `(t, g)`, `(t + 4, g)` | as the first two |
//!
//! `2t..` is two neighbours, 2t the lower half of the register. All lanes of the warp must take part.

use crate::backend;
use crate::element::Element;
use half::{bf16, f16};

/// A 16-bit float that tensor cores multiply: f16 and bf16.
pub trait Half: Element {
    #[doc(hidden)]
    #[track_caller]
    fn m16n8k16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];
}

impl Half for f16 {
    #[inline(always)]
    #[track_caller]
    fn m16n8k16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        backend::mma_f16(a, b, c)
    }
}

impl Half for bf16 {
    #[inline(always)]
    #[track_caller]
    fn m16n8k16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        backend::mma_bf16(a, b, c)
    }
}

/// A 16 x 16 times a 16 x 8 matrix of 16-bit floats, added to one of f32.
///
/// Products are exact; how the hardware adds them it does not say: terms are cut off and not rounded, some bits below the last
/// of the greatest.
#[inline(always)]
#[track_caller]
pub fn m16n8k16<T: Half>(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    T::m16n8k16(a, b, c)
}

/// A 16 x 8 times an 8 x 8 matrix of numbers that [`to_tf32`] made, added to one of f32.
#[inline(always)]
#[track_caller]
pub fn m16n8k8_tf32(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    backend::mma_tf32(a, b, c)
}

/// An 8 x 4 times a 4 x 8 matrix of f64, added to another, each step a fused multiply-add rounded to nearest.
#[inline(always)]
#[track_caller]
pub fn m8n8k4(a: f64, b: f64, c: [f64; 2]) -> [f64; 2] {
    backend::mma_f64(a, b, c)
}

/// A 16 x 8 times an 8 x 8 matrix of f64, added to another, each step a fused multiply-add rounded to nearest.
///
/// It is an instruction of sm_90 (PTX 7.8): on an H200 it multiplies at twice the rate of [`m8n8k4`].
#[inline(always)]
#[track_caller]
pub fn m16n8k8(a: [f64; 4], b: [f64; 2], c: [f64; 4]) -> [f64; 4] {
    backend::mma_f64_16(a, b, c)
}

/// The nearest number with 10 bits behind the point, ties away from zero, in an f32's upper 19 bits.
#[inline(always)]
pub fn to_tf32(x: f32) -> u32 {
    backend::to_tf32(x)
}
