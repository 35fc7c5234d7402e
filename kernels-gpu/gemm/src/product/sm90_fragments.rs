//! XW on tensor cores in f64, with the larger multiplication of sm_90.
//!
//! Blocks, warps and the ring are those of `warp_fragments`. The sums are f64, as exact as on CUDA cores. An element of
//! X is read once for each tile of columns.
//!
//! Changes from `warp_fragments`:
//!
//! - One instruction multiplies 16 x 8 by 8 x 8 ([`m16n8k8`](cuda_std::mma::m16n8k8)) instead of four that multiply
//!   8 x 4 by 4 x 8. An H200 computes 65.6 TFLOP/s with it, and 33.1 with the four.
//! - The L2 cache fetches 256 neighbouring bytes of X at once (`TileLayout::prefetch`), or 128 for a compact tile.
//!
//! When to use it: for f64 on every GPU of compute capability 9.0 or newer.

use crate::product::tile::TileLayout;
#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::plan::{Candidate, Chosen, choose};
use crate::product::tile::ring::Stage;
use crate::product::tile::warp_tiles::*;
use crate::product::warp_product::{self, Refill, StripProducts, Sums, TileProducts};
use crate::{BiasRelu, GemmKernel, RequiredArch, Rung, Strides};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch};
use core::array;
use cuda_std::mma;
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct Sm90Fragments;

/// Minimum number of bytes in a row of X for which blocks for up to 16 columns have four warps instead of eight.
#[cfg(not(target_arch = "nvptx64"))]
const LONG_ROW_BYTES: u64 = 1024;

/// Minimum number of warps in a block with a resident W of 48 columns or more. With fewer, it is faster to take narrower
/// tiles or to stream W.
const LEAST_WARPS: u32 = 8;

/// Maximum number of warps in a block with tiles of 64 columns, which is alone on its multiprocessor.
const MOST_WARPS: u32 = 12;

/// Minimum number of columns of X for which tiles of 32 columns are compared with wider ones, for a W of more than 48.
/// With fewer they were between 7 % faster and 6 % slower.
#[cfg(not(target_arch = "nvptx64"))]
const DEEP: u32 = 256;

/// Relative times of a tile's column where the multiplications take longest, measured on an H200 with 256 to 512
/// columns of X, mostly with 12 warps (docs/notes/gemm.md). They are used with fewer columns of X, too, and for 32 and
/// 48 columns with fewer warps.
#[cfg(not(target_arch = "nvptx64"))]
const TIME_OF_32: u64 = 247;
#[cfg(not(target_arch = "nvptx64"))]
const TIME_OF_48: u64 = 230;
#[cfg(not(target_arch = "nvptx64"))]
const TIME_OF_64: u64 = 214;

/// The same for a tile of 64 columns if W leaves room for 8 warps only.
#[cfg(not(target_arch = "nvptx64"))]
const TIME_OF_64_WITH_8_WARPS: u64 = 238;

impl Rung for Sm90Fragments {
    const SUMMARY: &'static str = "as warp_fragments, f64, by the wider multiplication of sm_90";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::WarpFragments);
    const STRIDES: Strides = Strides::Aligned;
    const REQUIRED_ARCH: RequiredArch = RequiredArch::Sm90;
}

#[cfg(not(target_arch = "nvptx64"))]
impl Multiplies<f64> for Sm90Fragments {
    fn plan(problem: GemmProblem) -> PlannedLaunch<f64> {
        chosen(problem).plan
    }

    fn pack(w: Vec<f64>, problem: GemmProblem) -> Vec<f64> {
        let chosen = chosen(problem);
        pack_strips(&w, problem.cols, chosen.shape, chosen.tile)
    }
}

/// The instance for a product, by the columns of W:
///
/// - up to 48: the narrowest tile that has them.
/// - 65 to 96, and X has at most half as many: one tile of 128, which reads X once. Memory takes longer than the surplus
///   products.
/// - 97 and more: tiles of 128 if they have no more surplus columns than those of 48 and 64, or, if X has at most an
///   eighth of W's columns, up to a tenth more columns than those of 48.
/// - otherwise: the tile of 64, 48 or, from [`DEEP`] on, 32 columns that takes the least time with its surplus columns.
///
/// A tile is taken if W leaves room for its least number of warps. If there is none, a tile of 48 or 64 columns streams
/// W.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen(problem: GemmProblem) -> Chosen<f64> {
    fn of<S: WarpTile>() -> Candidate<f64> {
        Candidate::new::<Sm90Products, S>(sm90_fragments::<S>)
    }
    let (depth, cols) = (problem.depth, problem.cols);
    let padded = |tile: u64| u64::from(cols).next_multiple_of(tile);
    // Long rows are read faster if fewer of them are in flight.
    let has_long_rows = u64::from(depth) * size_of::<f64>() as u64 >= LONG_ROW_BYTES;
    let wide_is_exact = padded(128) <= padded(64).min(padded(48));
    let wide_is_close = depth <= cols / 8 && 10 * padded(128) <= 11 * padded(48);
    let fits_wide = match cols {
        ..=64 => false,
        65..=96 => depth <= cols / 2,
        _ => wide_is_exact || wide_is_close,
    };
    let resident = match cols {
        ..=16 if has_long_rows => vec![of::<Columns16>().with_warps(4)],
        ..=16 => vec![of::<Columns16>()],
        17..=32 => vec![of::<Columns32>()],
        33..=40 => vec![of::<Columns48>()],
        41..=48 => vec![of::<Columns48>(), of::<Columns48Compact>()],
        _ => {
            let of_64 = of::<Columns64>();
            let time_of_64 = match of_64.warps(problem) {
                Some(..MOST_WARPS) => TIME_OF_64_WITH_8_WARPS,
                _ => TIME_OF_64,
            };
            let mut narrower = vec![
                (time_of_64 * padded(64), of_64),
                (TIME_OF_48 * padded(48), of::<Columns48>()),
            ];
            if depth >= DEEP {
                narrower.push((TIME_OF_32 * padded(32), of::<Columns32>()));
            }
            narrower.sort_by_key(|&(time, _)| time);
            let wide = fits_wide.then(of::<Columns128>);
            let narrower = narrower.into_iter().map(|(_, candidate)| candidate);
            wide.into_iter().chain(narrower).collect()
        }
    };
    let all = [
        of::<Columns16>(),
        of::<Columns32>(),
        of::<Columns48>(),
        of::<Columns48Compact>(),
        of::<Columns48Streamed>(),
        of::<Columns64>(),
        of::<Columns64Streamed>(),
        of::<Columns128>(),
    ];
    let streamed = match cols {
        ..=48 | 65..=96 => of::<Columns48Streamed>(),
        _ => of::<Columns64Streamed>(),
    };
    choose(problem, resident, streamed, all)
}

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`; a warp computes tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` is k x n, packed by [`Sm90Fragments`], and `y` is m x n. They do not overlap and are aligned to 16
/// bytes. The launch is the plan of [`Sm90Fragments`]. The device has compute capability 9.0 or newer.
#[kernel(
    name = "gemm_sm90_fragments",
    target = sm_90,
    S = [
        Columns16, Columns32, Columns48, Columns48Compact, Columns48Streamed, Columns64, Columns64Streamed, Columns128
    ]
)]
pub unsafe fn sm90_fragments<S: WarpTile>(
    x: Dense<f64>,
    w: Dense<f64>,
    y: DenseMut<f64>,
    epilogue: BiasRelu<f64>,
) {
    // SAFETY: operands, packing and launch are as the contract says, and all threads call it.
    unsafe { warp_product::multiply::<f64, Sm90Products, S>(&x, &w, &y, &epilogue) };
}

/// Products of f64 by the instruction of sm_90.
struct Sm90Products;

impl<S: WarpTile> TileProducts<f64, S> for Sm90Products {
    const TILE: TileLayout = {
        let tile = S::SHAPE.tile(size_of::<f64>());
        // With 64 columns a lane takes more than 128 registers: a block of 12 warps fits on a multiprocessor, and no
        // second block of 8.
        let fills_registers = S::SHAPE.column_fragments == 8;
        TileLayout {
            prefetch: if S::SHAPE.compact { 128 } else { 256 },
            least_warps: if S::SHAPE.column_fragments >= 6 {
                LEAST_WARPS
            } else {
                tile.least_warps
            },
            blocks: if fills_registers { 1 } else { tile.blocks },
            warps: if fills_registers {
                MOST_WARPS
            } else {
                tile.warps
            },
            warps_alone: if fills_registers {
                MOST_WARPS
            } else {
                tile.warps_alone
            },
            ..tile
        }
    };

    #[inline(always)]
    unsafe fn start(_: &Dense<f64>, _: u64) -> Self {
        Self
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk(stage: Stage, sums: &mut Sums<f64>, refill: Refill<'_>) {
        // SAFETY: the stage is written and all lanes call it, by the contract.
        unsafe { warp_product::add_strips::<f64, Self, S>(stage, sums, refill) };
    }
}

impl StripProducts<f64> for Sm90Products {
    type XStrips = [f64; 4];
    type WStrip = [f64; 2];

    // Loads of f64, not of words: from words, the compiler copies each strip of W to other registers before it is
    // multiplied, and the next copy waits for the multiplication.
    #[inline(always)]
    #[track_caller]
    unsafe fn load_x(low: Shared<u32>, high: Shared<u32>, _: bool) -> [f64; 4] {
        // SAFETY: both strips are written, by the contract, and aligned to 16 bytes: f64 has no unaligned tiles.
        let (low, high) = unsafe { (low.cast::<f64>().load2(0), high.cast::<f64>().load2(0)) };
        [low[0], high[0], low[1], high[1]]
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn load_w(strip: Shared<u32>) -> [f64; 2] {
        // SAFETY: the strip is written, by the contract; packed strips are aligned to 16 bytes.
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
