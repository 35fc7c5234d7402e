//! Tensor cores of sm_90a, 16-bit elements: four warps together, W from shared memory without registers.
//!
//! Change from `warp_fragments`: there each warp reads all of W from shared memory for its 16 rows, 1 KiB of W for every 128 bytes
//! of a row at 128 columns. That takes 256 of a multiprocessor's cycles for 4 KiB of X, which memory delivers in 220. Here four
//! warps of 16 rows multiply together (`wgmma`): the tensor cores read W once for all of them. X comes by the same way as there,
//! through each warp's own ring, and its strips go into registers as they are.
//!
//! The instructions are of sm_90a, which is compute capability 9.0 and no other.

use crate::product::tile::Tile;
#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::plan::{Candidate, Chosen, choose};
use crate::product::tile::ring::Stage;
use crate::product::tile::warp_tiles::*;
use crate::product::warp_product::{self, Products, Refill, Sums, load_strip};
use crate::{Epilogue, GemmKernel, Rung, Target};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warpgroup::{self, WarpgroupHalf};
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut, Operand};

/// The kernel in the table.
pub struct WarpgroupFragments;

/// Bytes of an element.
const SIZE: usize = 2;

impl Rung for WarpgroupFragments {
    const SUMMARY: &'static str =
        "as warp_fragments, 16-bit elements, four warps together by the instructions of sm_90a";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::WarpFragments);
    const TARGET: Target = Target::Sm90a;

    fn refusal(depth: u32, size: usize) -> Option<&'static str> {
        warp_product::refuses_odd_rows(depth, size)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: Operand<Sum = f32> + WarpgroupHalf> Multiplies<T> for WarpgroupFragments {
    fn plan(shape: Shape) -> Plan<T> {
        chosen(shape).plan
    }

    /// For each chunk of X what [`warpgroup::m64k64`] wants, numbered along k as X's strips are.
    fn pack(w: Vec<T>, shape: Shape) -> Vec<T> {
        let Chosen {
            shape: shares,
            tile,
            ..
        } = chosen::<T>(shape);
        let order = |i| {
            let (in_column, i) = (i % 8, i / 8);
            let (column, i) = (i % 8, i / 8);
            let (half, i) = (i % 2, i / 2);
            let (fragment, part) = (i % shares.column_fragments, i / shares.column_fragments);
            // Two parts of 16 for each 32 elements, of which strip t of four has 8: lane t multiplies half of them in each part, two
            // and two.
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
        tile.pack(&w, shape.cols, T::narrow(0.0), order, |_, weight| weight)
    }
}

/// The instance for a product.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen<T: Operand<Sum = f32> + WarpgroupHalf>(shape: Shape) -> Chosen<T> {
    fn of<T: Operand<Sum = f32> + WarpgroupHalf, S: WarpTile>() -> Candidate<T> {
        Candidate::new::<Warpgroup, S>(warpgroup_fragments::<T, S>)
    }
    let resident = match shape.cols {
        ..=48 => of::<T, Columns48Unaligned>(),
        _ => of::<T, Columns128>(),
    };
    choose(shape, [resident], of::<T, Columns128Streamed>())
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, four warps for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`WarpgroupFragments`] packs it, `y` m x n, apart from each other and aligned to 16 bytes; the launch
/// is its plan's; the device has compute capability 9.0.
#[kernel(
    name = "gemm_warpgroup_fragments",
    target = sm_90a,
    T = [f16, bf16], S = [Columns48Unaligned, Columns128, Columns128Streamed]
)]
pub unsafe fn warpgroup_fragments<T: Operand<Sum = f32> + WarpgroupHalf, S: WarpTile>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    // SAFETY: the kernel's contract.
    unsafe { warp_product::multiply::<T, Warpgroup, S>(&x, &w, &y, &epilogue) };
}

/// By four warps together.
struct Warpgroup;

impl<T: Operand<Sum = f32> + WarpgroupHalf, S: WarpTile> Products<T, S> for Warpgroup {
    const TILE: Tile = {
        let is_wide = S::SHAPE.column_fragments == 16;
        let warps = if is_wide && !S::SHAPE.streamed { 12 } else { 8 };
        Tile {
            team: 4,
            prefetch: if S::SHAPE.unaligned { 128 } else { 256 },
            // With up to 128 registers a lane, two blocks of 8 warps fit on a multiprocessor.
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
        // SAFETY: strips of the stage, all of whose 128 bytes of a row are written, and W; the warps of a team have as many chunks.
        unsafe {
            let unaligned = const { S::SHAPE.unaligned };
            let strip = |rows, step| load_strip(stage.strip(rows, step), unaligned);
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
