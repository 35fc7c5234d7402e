//! XW on tensor cores in f16 and bf16, with the warpgroup instructions of sm_90a.
//!
//! A warpgroup (four warps) computes 64 rows and 48 or 128 columns at once, 16 rows each warp. Sums are f32. Each warp
//! streams its own rows of X through its ring, as in `warp_fragments`, and loads strips into registers. An element of X
//! is read once for each tile of columns.
//!
//! Change from `warp_fragments`: four warps multiply together (`wgmma`), and the tensor cores read W from shared
//! memory, once for all four. In `warp_fragments` each warp loads all of W into registers for its 16 rows. At 128
//! columns that takes a multiprocessor 256 cycles for 4 KiB of X, which memory delivers in 220.
//!
//! Of rows of an odd number of elements, every other one starts in the middle of a word: lanes shift words by half of
//! their bits.
//!
//! When to use it: for 17 to 48 columns, from 65 on, and for rows of an odd number of elements, up to 1024. sm_90a is
//! compute capability 9.0 and no other.

use crate::product::tile::TileLayout;
#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::plan::{Candidate, Chosen, choose};
use crate::product::tile::ring::Stage;
use crate::product::tile::warp_tiles::*;
use crate::product::warp_product::{self, Refill, Sums, TileProducts, load_strip};
use crate::{BiasRelu, GemmKernel, RequiredArch, Rung, Strides};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warpgroup::{self, WgmmaElement};
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut, Operand};

/// The kernel in the table.
pub struct WarpgroupFragments;

/// Bytes of an element.
const SIZE: usize = 2;

/// Maximum depth of a product with rows of an odd number of elements: for these there is no tile that streams W. 48
/// columns of W then take 96 KiB, beside which a warpgroup has room for its stages.
const MAX_ODD_DEPTH: u32 = 1024;

impl Rung for WarpgroupFragments {
    const SUMMARY: &'static str =
        "as warp_fragments, 16-bit elements, four warps together by the instructions of sm_90a";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::WarpFragments);
    const STRIDES: Strides = Strides::Aligned;
    const REQUIRED_ARCH: RequiredArch = RequiredArch::Sm90a;

    fn refusal(depth: u32, _: usize) -> Option<&'static str> {
        let is_odd = !depth.is_multiple_of(2);
        (is_odd && depth > MAX_ODD_DEPTH)
            .then_some("it streams a W of more than 1024 rows, and then copies whole words of X")
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: Operand<Sum = f32> + WgmmaElement> Multiplies<T> for WarpgroupFragments {
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        chosen(problem).plan
    }

    /// W as [`warpgroup::m64k64`] reads it, chunk by chunk, with k in the order of X's strips.
    fn pack(w: Vec<T>, problem: GemmProblem) -> Vec<T> {
        let Chosen {
            shape: shares,
            tile,
            ..
        } = chosen::<T>(problem);
        let order = |i| {
            let (in_column, i) = (i % 8, i / 8);
            let (column, i) = (i % 8, i / 8);
            let (half, i) = (i % 2, i / 2);
            let (fragment, part) = (i % shares.column_fragments, i / shares.column_fragments);
            // 32 elements of k are two parts of 16. Strip t of the four has 8 of the 32 elements; in each part, lane t
            // multiplies 4 of them, as two pairs.
            let (strip, element) = (in_column / 2, in_column % 2);
            let word = part % 2 * 2 + half;
            let word = if shares.unaligned {
                4 * word + strip
            } else {
                4 * strip + word
            };
            (
                part / 2 * 32 + 2 * word + element,
                shares.column(fragment, column, SIZE),
            )
        };
        tile.pack(&w, problem.cols, T::narrow(0.0), order, |_, weight| weight)
    }
}

/// The instance for a product.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen<T: Operand<Sum = f32> + WgmmaElement>(problem: GemmProblem) -> Chosen<T> {
    fn of<T: Operand<Sum = f32> + WgmmaElement, S: WarpTile>() -> Candidate<T> {
        Candidate::new::<WarpgroupProducts, S>(warpgroup_fragments::<T, S>)
    }
    let unaligned = || {
        [
            of::<T, Columns128Unaligned>(),
            of::<T, Columns48Unaligned>(),
        ]
    };
    if !problem.depth.is_multiple_of(2) {
        let narrowest = usize::from(problem.cols <= 48);
        return choose(
            problem,
            unaligned().into_iter().skip(narrowest),
            None,
            unaligned(),
        );
    }
    let resident = match problem.cols {
        ..=48 => of::<T, Columns48Unaligned>(),
        _ => of::<T, Columns128>(),
    };
    let all = [
        of::<T, Columns48Unaligned>(),
        of::<T, Columns128>(),
        of::<T, Columns128Unaligned>(),
        of::<T, Columns128Streamed>(),
    ];
    choose(problem, [resident], of::<T, Columns128Streamed>(), all)
}

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`; a warpgroup computes tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` is k x n, packed by [`WarpgroupFragments`], and `y` is m x n. They do not overlap and are aligned
/// to 16 bytes. The launch is the plan of [`WarpgroupFragments`]. The device has compute capability 9.0.
#[kernel(
    name = "gemm_warpgroup_fragments",
    target = sm_90a,
    T = [f16, bf16], S = [Columns48Unaligned, Columns128, Columns128Streamed];
    T = [f16, bf16], S = [Columns128Unaligned], registers = 168
)]
pub unsafe fn warpgroup_fragments<T: Operand<Sum = f32> + WgmmaElement, S: WarpTile>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    // SAFETY: operands, packing and launch are as the contract says, and all threads call it.
    unsafe { warp_product::multiply::<T, WarpgroupProducts, S>(&x, &w, &y, &epilogue) };
}

/// Products of 16-bit elements by a warpgroup.
struct WarpgroupProducts;

impl<T: Operand<Sum = f32> + WgmmaElement, S: WarpTile> TileProducts<T, S> for WarpgroupProducts {
    const TILE: TileLayout = {
        let is_wide = S::SHAPE.column_fragments == 16;
        let warps = if is_wide && !S::SHAPE.streamed { 12 } else { 8 };
        TileLayout {
            warps_together: 4,
            prefetch: if S::SHAPE.unaligned { 128 } else { 256 },
            // With at most 128 registers a lane, two blocks of 8 warps fit on a multiprocessor.
            blocks: 2,
            warps,
            warps_alone: warps,
            ..S::SHAPE.tile(SIZE)
        }
    };

    #[inline(always)]
    unsafe fn start(_: &Dense<T>, _: u64) -> Self {
        Self
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk(stage: Stage, sums: &mut Sums<T>, _: Refill<'_>) {
        // SAFETY: the stage is written by the contract, with zeros past a row's end, so all strips of its 128 bytes
        // are. W is packed for the tile. The four warps have equally many chunks, so all of them call it together.
        unsafe {
            let strip = |rows, step| {
                if const { S::SHAPE.unaligned } {
                    stage.load_halves(rows, step)
                } else {
                    load_strip(stage.strip(rows, step), false)
                }
            };
            let (low, high) = ([strip(0, 0), strip(0, 1)], [strip(8, 0), strip(8, 1)]);
            let x = array::from_fn(|part| {
                let (low, high) = (low[part / 2], high[part / 2]);
                let first = part % 2 * 2;
                [low[first], high[first], low[first + 1], high[first + 1]]
            });
            if const { S::SHAPE.column_fragments == 6 } {
                let products =
                    warpgroup::m64k64::<T, 6>(x, stage.weights, array::from_fn(|n| sums[0][n]));
                unroll!(n in 0..8 {
                    if const { n < 6 } {
                        sums[0][n] = products[n % 6];
                    }
                });
            } else {
                sums[0] = warpgroup::m64k64::<T, 16>(x, stage.weights, sums[0]);
            }
        }
    }
}
