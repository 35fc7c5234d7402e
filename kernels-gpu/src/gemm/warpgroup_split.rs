//! Tensor cores of sm_90a, f32 in two parts of tf32: four warps together, W from shared memory without registers.
//!
//! Changes from `split_fragments`, which are those from `warp_fragments` to `warpgroup_fragments`: there each warp reads all of W for its 16 rows,
//! and splits it, twelve instructions beside six multiplications. Here W comes split by the host, and four warps multiply together
//! (`wgmma`), for whom the tensor cores read it once, and twice as fast. Of a lane's registers that leaves only X and the sums. The products of a
//! chunk of 32 elements begin at zero, and are added to the sum on CUDA cores.
//!
//! Of 281,903 rows on an H200: 100 to 47 columns 0.054 ms, 0.83 of the floor, after 0.083 for `split_fragments`, cuBLAS 0.109; 128 to 128 0.097, 0.75,
//! after 0.193, cuBLAS 0.249; 602 to 41 0.267, 0.66, after 0.454, cuBLAS 0.504. With 8 warps a block and not 16 100 to 47 took 0.068. Parts of W take
//! twice the room: by 602 columns of X they come with the chunks of X, and the warps of a block keep step. Two blocks of 8 warps, which wait at
//! different times, fit with three stages; one block of 16 warps takes 0.342.
//!
//! The instructions are of sm_90a, which is compute capability 9.0 and no other.

use super::ring::Stage;
use super::shares::SHARES;
use super::split_fragments::{Parts, Split};
use super::tile::Tile;
use super::warp_product::{self, Operands, Products, Sums, load_strip};
use super::{Epilogue, Shape};
use crate::matrix::{Dense, DenseMut};
use crate::unroll::unroll;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warpgroup;

/// What it does, in one line.
pub const SUMMARY: &str =
    "as split_fragments, four warps together by the instructions of sm_90a, W split by the host";

/// Bytes of an element.
const SIZE: usize = 4;

/// The tile of that number, of 48 or 64 columns.
const fn tile(choice: usize) -> Tile {
    Tile {
        team: 4,
        parts: 2,
        blocks: 2,
        warps: 16,
        warps_alone: 16,
        warps_streaming: 8,
        line: if SHARES[choice].apart { 128 } else { 256 },
        ..SHARES[choice].tile(SIZE)
    }
}

/// The tile that a product takes, the launch, and whether W is streamed.
fn plan(shape: Shape) -> (usize, LaunchConfig, bool) {
    let plan = |choice: usize| {
        let (config, is_streamed) = tile(choice).plan(shape, SIZE as u32);
        (choice, config, is_streamed)
    };
    let found = match shape.cols {
        ..=48 if shape.depth.is_multiple_of(4) => plan(2),
        ..=48 => plan(7),
        _ => plan(3),
    };
    if found.0 != 3 && found.2 {
        plan(9)
    } else {
        found
    }
}

/// Tiles of columns along x, blocks that take tiles of rows in turn along y.
pub fn launch(shape: Shape) -> LaunchConfig {
    plan(shape).1
}

/// The handle of the kernel for the shape's tile.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle(shape: Shape) -> Kernel<super::Arguments<f32>> {
    match plan(shape) {
        (2, _, _) => warpgroup_split::<2, false>(),
        (7, _, _) => warpgroup_split::<7, false>(),
        (9, _, _) => warpgroup_split::<9, true>(),
        (_, _, false) => warpgroup_split::<3, false>(),
        (_, _, true) => warpgroup_split::<3, true>(),
    }
}

/// W as the kernel reads it: for each chunk of X what [`warpgroup::m64k32_in_parts`] wants, numbered along k as X's strips are; and what
/// [`split_fragments`](super::split_fragments) has after it.
#[cfg(not(target_arch = "nvptx64"))]
pub fn pack(w: &[f32], shape: Shape) -> Vec<f32> {
    let (shares, tile) = {
        let choice = plan(shape).0;
        (SHARES[choice], tile(choice))
    };
    let order = |i: usize| {
        let (member, i) = (i % 4, i / 4);
        let (column, i) = (i % 8, i / 8);
        let (half, i) = (i % 2, i / 2);
        let (tile, step) = (i % shares.cols, i / shares.cols);
        // A strip of 16 elements for two steps, of which lane t of four has t and t + 4.
        let word = step % 2 * 2 + half;
        let row = step / 2 * 16
            + if shares.apart {
                4 * word + member
            } else {
                4 * member + word
            };
        (row, shares.column(tile, column, SIZE))
    };
    let part = |number: u32, weight: f32| {
        let parts = Parts::of([weight.to_bits(); 4]);
        let bits = if number == 0 { parts.high } else { parts.low };
        f32::from_bits(bits[0])
    };
    super::split_fragments::with_plain(tile.pack(w, shape.cols, 0.0, order, part), w, shape)
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, four warps for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`pack`] makes it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is that of [`launch`]; the
/// device has compute capability 9.0.
#[kernel(
    name = "gemm_split_fragments_sm90a",
    CHOICE = [2, 3, 7], STREAMED = [false];
    CHOICE = [3, 9], STREAMED = [true]
)]
pub unsafe fn warpgroup_split<const CHOICE: usize, const STREAMED: bool>(
    x: Dense<f32>,
    w: Dense<f32>,
    y: DenseMut<f32>,
    epilogue: Epilogue<f32>,
) {
    // SAFETY: the kernel's contract.
    unsafe { warp_product::multiply::<f32, Warpgroup, CHOICE, STREAMED>(&x, &w, &y, &epilogue) };
}

/// By four warps together.
struct Warpgroup(Split);

impl Products<f32> for Warpgroup {
    #[inline(always)]
    unsafe fn start(w: &Dense<f32>, packed_bytes: u64) -> Self {
        // SAFETY: the caller's contract.
        Self(unsafe { Split::start(w, packed_bytes) })
    }

    #[inline(always)]
    fn tile<const CHOICE: usize>() -> Tile {
        const { tile(CHOICE) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk<const CHOICE: usize>(stage: Stage, sums: &mut Sums<f32>) {
        // SAFETY: strips of the stage, all of whose 128 bytes of a row are written, and W; the warps of a team have as many chunks.
        unsafe {
            let apart = const { SHARES[CHOICE].apart };
            let strip = |rows, step| Parts::of(load_strip(stage.strip(rows, step), apart));
            let (low_rows, high_rows) = ([strip(0, 0), strip(0, 1)], [strip(8, 0), strip(8, 1)]);
            let fragments = |part: fn(&Parts) -> &[u32; 4]| {
                array::from_fn(|step: usize| {
                    let (low, high) = (part(&low_rows[step / 2]), part(&high_rows[step / 2]));
                    let first = step % 2 * 2;
                    [low[first], high[first], low[first + 1], high[first + 1]]
                })
            };
            let (high, low) = (
                fragments(|parts| &parts.high),
                fragments(|parts| &parts.low),
            );
            if const { SHARES[CHOICE].cols == 6 } {
                let products = warpgroup::m64k32_in_parts::<6>(high, low, stage.weights);
                add(sums, products);
            } else {
                let products = warpgroup::m64k32_in_parts::<8>(high, low, stage.weights);
                add(sums, products);
            }
        }
    }

    #[inline(always)]
    unsafe fn replace<const CHOICE: usize>(
        &self,
        operands: &Operands<'_, f32>,
        rows: (u32, u32),
        columns: (u32, u32),
        sums: &Sums<f32>,
    ) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.0.replace::<CHOICE>(operands, rows, columns, sums) }
    }
}

/// Adds the products of a chunk to the sums.
#[inline(always)]
fn add<const TILES: usize>(sums: &mut Sums<f32>, products: [[f32; 4]; TILES]) {
    unroll!(n in 0..8 {
        if const { n < TILES } {
            unroll!(i in 0..4 {
                sums[0][n][i] += products[n % TILES][i];
            });
        }
    });
}
