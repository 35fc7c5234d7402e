//! Tensor cores, f64: the multiplication that sm_90 brought.
//!
//! Changes from `warp_fragments`: one instruction multiplies 16 x 8 by 8 x 8 ([`m16n8k8`](cuda_std::mma::m16n8k8)) where four
//! multiplied 8 x 4 by 4 x 8. An H200 does 65.6 TFLOP/s with it and 33.1 with those. The L2 cache fetches 256 neighbouring bytes
//! of X at once (`Tile::prefetch`).

use crate::product::tile::Tile;
#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::plan::{Candidate, Chosen, choose};
use crate::product::tile::ring::Stage;
use crate::product::tile::warp_tiles::*;
use crate::product::warp_product::{self, Products, Refill, Strips, Sums};
use crate::{Epilogue, GemmKernel, Rung, Target};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape};
use core::array;
use cuda_std::mma;
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct Sm90Fragments;

/// From so many bytes of a row on, blocks for up to 16 columns have four warps and not eight.
#[cfg(not(target_arch = "nvptx64"))]
const LONG_ROW_BYTES: u64 = 1024;

impl Rung for Sm90Fragments {
    const SUMMARY: &'static str = "as warp_fragments, f64, by the wider multiplication of sm_90";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::WarpFragments);
    const TARGET: Target = Target::Sm90;
}

#[cfg(not(target_arch = "nvptx64"))]
impl Multiplies<f64> for Sm90Fragments {
    fn plan(shape: Shape) -> Plan<f64> {
        chosen(shape).plan
    }

    fn pack(w: Vec<f64>, shape: Shape) -> Vec<f64> {
        let chosen = chosen(shape);
        pack_strips(&w, shape.cols, chosen.shape, chosen.tile)
    }
}

/// The instance for a product. Two tiles of 48 columns compute less beyond 49 to 96 columns than one of 128.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen(shape: Shape) -> Chosen<f64> {
    fn of<S: WarpTile>() -> Candidate<f64> {
        Candidate::new::<Products90, S>(sm90_fragments::<S>)
    }
    // With fewer long rows in flight memory is faster.
    let has_long_rows = u64::from(shape.depth) * size_of::<f64>() as u64 >= LONG_ROW_BYTES;
    let resident = match shape.cols {
        ..=16 if has_long_rows => vec![of::<Columns16>().with_warps(4)],
        ..=16 => vec![of::<Columns16>()],
        41..=48 => vec![of::<Columns48>(), of::<Columns48Compact>()],
        17..=40 | 49..=96 => vec![of::<Columns48>()],
        _ => vec![of::<Columns128>()],
    };
    choose(shape, resident, of::<Columns48Streamed>())
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a warp for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`Sm90Fragments`] packs it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is
/// its plan's; the device has compute capability 9.0 or newer.
#[kernel(
    name = "gemm_double_fragments",
    target = sm_90,
    S = [Columns16, Columns48, Columns48Compact, Columns48Streamed, Columns128]
)]
pub unsafe fn sm90_fragments<S: WarpTile>(
    x: Dense<f64>,
    w: Dense<f64>,
    y: DenseMut<f64>,
    epilogue: Epilogue<f64>,
) {
    // SAFETY: the kernel's contract.
    unsafe { warp_product::multiply::<f64, Products90, S>(&x, &w, &y, &epilogue) };
}

/// By the instruction of sm_90.
struct Products90;

impl<S: WarpTile> Products<f64, S> for Products90 {
    const TILE: Tile = Tile {
        prefetch: if S::SHAPE.compact { 128 } else { 256 },
        ..S::SHAPE.tile(size_of::<f64>())
    };

    #[inline(always)]
    unsafe fn start(_: &Dense<f64>, _: u64) -> Self {
        Self
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk(stage: Stage, sums: &mut Sums<f64>, refill: Refill<'_>) {
        // SAFETY: the caller's contract.
        unsafe { warp_product::add_strips::<f64, Self, S>(stage, sums, refill) };
    }
}

impl Strips<f64> for Products90 {
    type Rows = [f64; 4];
    type Weights = [f64; 2];

    // Loads of f64, not of words: from words the compiler copies each strip of W to other registers before it is multiplied, and the
    // next copy waits for the multiplication.
    #[inline(always)]
    #[track_caller]
    unsafe fn rows(low: Shared<u32>, high: Shared<u32>, _: bool) -> [f64; 4] {
        // SAFETY: the caller's contract.
        let (low, high) = unsafe { (low.cast::<f64>().load2(0), high.cast::<f64>().load2(0)) };
        [low[0], high[0], low[1], high[1]]
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn weights(strip: Shared<u32>) -> [f64; 2] {
        // SAFETY: the caller's contract.
        unsafe { strip.cast::<f64>().load2(0) }
    }

    #[inline(always)]
    #[track_caller]
    fn add<const COUNT: usize>(
        x: [f64; 4],
        w: [[f64; 2]; COUNT],
        sums: [[f64; 4]; COUNT],
    ) -> [[f64; 4]; COUNT] {
        array::from_fn(|n| mma::m16n8k8(x, w[n], sums[n]))
    }
}
