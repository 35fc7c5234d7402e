//! Tensor cores of sm_90a, 16-bit elements: four warps together, W from shared memory without registers.
//!
//! Change from `warp_fragments`: there each warp reads all of W from shared memory for its 16 rows, a KiB of W for every 128 bytes of a row.
//! By 128 columns that is eight times as much as X, and takes 256 of a multiprocessor's cycles for 4 KiB of X, which memory delivers in
//! 220. Here four warps of 16 rows multiply together (`wgmma`): the tensor cores read W once for all of them. X comes by the same way as
//! there, through each warp's own ring, and its strips go into registers as they are.
//!
//! Of 281,903 rows on an H200, 128 to 128 columns of f16: 0.0420 ms, 0.95 of the floor, after 0.051 for `warp_fragments`; cuBLAS takes 0.0429. What
//! took the time were a warp's own instructions, one after another, and not the memory, for which 2 in 100 of the cycles waited: with 710
//! of them for a tile of 16 rows, and a block of 12 warps, it was 0.047; with half as many, and two blocks of 8 warps, 0.044; the rest is tiles in
//! turn. Two blocks want no more than 128 registers a lane. With fewer columns than 65 most of that tile is empty: 0.037 ms for 64
//! columns, when `warp_fragments` took 0.034.
//!
//! Up to 48 columns have a tile of their own: 100 to 47 0.031 ms after 0.033 for `warp_fragments`, 602 to 41 0.111, 0.82 of the floor, after 0.122, with lines
//! of 128 bytes; with those of 256, of which half is another row's or a later chunk's, 0.126. There 16 warps take 0.115.
//!
//! With more rows than the second-level cache holds it is the memory that takes the time: 2,449,029 rows, 128 to 128, took 0.358 ms when the cache
//! got of each row first the one 128 bytes and later the other. Now it gets both at once (`Tile::line`), and a block of 12 warps reads fewer
//! rows at the same time than two of 8: 0.332, with those of 8 0.342; cuBLAS takes 0.344. With lines of 128 bytes that is 0.357. What gained nothing: stores of 128 neighbouring bytes in one access of a warp (0.364), a tile of X into the cache by one
//! instruction (`cp.async.bulk.prefetch`; 0.334, and 0.392 a tile ahead; 128 to 16 of f64 0.769 after 0.656, as the tiles of all warps do not fit the
//! cache). Stores that do not stay in the cache gained nothing with 12 warps.
//!
//! The instructions are of sm_90a, which is compute capability 9.0 and no other.

use crate::product::tile::Tile;
use crate::product::tile::ring::Stage;
use crate::product::tile::shares::{SHARES, Shares};
use crate::product::warp_product::{self, Products, Refill, Sums, load_strip};
use crate::{Epilogue, GemmElement, Shape};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warpgroup::{self, WarpgroupHalf};
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str =
    "as warp_fragments, 16-bit elements, four warps together by the instructions of sm_90a";

/// The rung that it continues.
pub const PARENT: Option<crate::GemmKernel> = Some(crate::GemmKernel::WarpFragments);

/// Bytes of an element.
const SIZE: usize = 2;

/// The tile of that number, of 48 or 128 columns.
const fn tile(choice: usize) -> Tile {
    let shares: Shares = SHARES[choice];
    Tile {
        team: 4,
        line: if shares.apart { 128 } else { 256 },
        // With up to 128 registers a lane, two blocks of 8 warps fit on a multiprocessor.
        blocks: 2,
        warps: if shares.cols == 6 { 8 } else { 12 },
        warps_alone: if shares.cols == 6 { 8 } else { 12 },
        ..shares.tile(SIZE)
    }
}

/// The tile that a product takes, the launch, and whether W is streamed.
fn plan(shape: Shape) -> (usize, LaunchConfig, bool) {
    let choice = match shape.cols {
        49.. => 4,
        _ if !shape.depth.is_multiple_of(8) && shape.depth.is_multiple_of(2) => 7,
        _ => 2,
    };
    let (config, is_streamed) = tile(choice).plan(shape, SIZE as u32);
    (choice, config, is_streamed)
}

/// Tiles of columns along x, blocks that take tiles of rows in turn along y.
pub fn launch(shape: Shape) -> LaunchConfig {
    plan(shape).1
}

/// The handle of the kernel, for the shape's tile.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: GemmElement<Sum = f32> + WarpgroupHalf>(
    shape: Shape,
) -> Kernel<crate::Arguments<T>> {
    match plan(shape) {
        (2, _, false) => warpgroup_fragments::<T, 2, false>(),
        (2, _, true) => warpgroup_fragments::<T, 2, true>(),
        (7, _, false) => warpgroup_fragments::<T, 7, false>(),
        (7, _, true) => warpgroup_fragments::<T, 7, true>(),
        (_, _, false) => warpgroup_fragments::<T, 4, false>(),
        (_, _, true) => warpgroup_fragments::<T, 4, true>(),
    }
}

/// W as the kernel reads it: for each chunk of X what [`warpgroup::m64k64`] wants, numbered along k as X's strips are.
#[cfg(not(target_arch = "nvptx64"))]
pub fn pack<T: GemmElement>(w: &[T], shape: Shape) -> Vec<T> {
    let zero = T::narrow(T::Sum::ZERO);
    let (shares, of_warps) = {
        let choice = plan(shape).0;
        (SHARES[choice], tile(choice))
    };
    let order = |i| {
        let (in_column, i) = (i % 8, i / 8);
        let (column, i) = (i % 8, i / 8);
        let (half, i) = (i % 2, i / 2);
        let (tile, part) = (i % shares.cols, i / shares.cols);
        // Two parts of 16 for each 32 elements, of which strip t of four has 8: lane t multiplies half of them in each part, two
        // and two.
        let (strip, element) = (in_column / 2, in_column % 2);
        let word = part % 2 * 2 + half;
        let word = if shares.apart {
            4 * word + strip
        } else {
            4 * strip + word
        };
        (
            part / 2 * 32 + 2 * word + element,
            shares.column(tile, column, SIZE),
        )
    };
    of_warps.pack(w, shape.cols, zero, order, |_, weight| weight)
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, four warps for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`pack`] makes it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is that of [`launch`]; the
/// device has compute capability 9.0.
#[kernel(name = "gemm_warpgroup_fragments", target = sm_90a, T = [f16, bf16], CHOICE = [2, 4, 7], STREAMED = [false, true])]
pub unsafe fn warpgroup_fragments<
    T: GemmElement<Sum = f32> + WarpgroupHalf,
    const CHOICE: usize,
    const STREAMED: bool,
>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    // SAFETY: the kernel's contract.
    unsafe { warp_product::multiply::<T, Warpgroup, CHOICE, STREAMED>(&x, &w, &y, &epilogue) };
}

/// By four warps together.
struct Warpgroup;

impl<T: GemmElement<Sum = f32> + WarpgroupHalf> Products<T> for Warpgroup {
    #[inline(always)]
    unsafe fn start(_: &Dense<T>, _: u64) -> Self {
        Self
    }

    #[inline(always)]
    fn tile<const CHOICE: usize>() -> Tile {
        const { tile(CHOICE) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk<const CHOICE: usize>(stage: Stage, sums: &mut Sums<T>, _: Refill<'_>) {
        // SAFETY: strips of the stage, all of whose 128 bytes of a row are written, and W; the warps of a team have as many chunks.
        unsafe {
            let apart = const { SHARES[CHOICE].apart };
            let strip = |rows, step| load_strip(stage.strip(rows, step), apart);
            let (low, high) = ([strip(0, 0), strip(0, 1)], [strip(8, 0), strip(8, 1)]);
            let x = array::from_fn(|part| {
                let (low, high) = (low[part / 2], high[part / 2]);
                let first = part % 2 * 2;
                [low[first], high[first], low[first + 1], high[first + 1]]
            });
            if const { SHARES[CHOICE].cols == 6 } {
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
