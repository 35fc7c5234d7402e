//! Tensor cores of sm_90a, f32 in three parts of bf16: four warps together, W from shared memory without registers.
//!
//! Changes from `split_fragments`, which are those from `warp_fragments` to `warpgroup_fragments`: there each warp reads all of W for its 16 rows,
//! and splits it, twelve instructions beside six multiplications. Here W comes split by the host, and four warps multiply together
//! (`wgmma`), for whom the tensor cores read it once, and twice as fast. Of a lane's registers that leaves only X and the sums. The products of a
//! chunk of 32 elements begin at zero, and are added to the sum on CUDA cores.
//!
//! An element is the sum of three numbers of 8 bits each, X's cut off, W's rounded. Of their nine products the six greatest are added, from the
//! least on; the three others are 2^-23 and 2^-24 of a term at most and less. Two parts of tf32 lose 2^-22, and take the same time, since tensor cores
//! multiply bf16 twice as fast: 0.054 ms for 100 to 47 columns, 0.099 for 128 to 128. But W takes 6 bytes an element here, and took 8 there: by 602
//! columns of X it had no room in shared memory, came with the chunks of X, and the warps of a block kept step: 602 to 41 took 0.274.
//!
//! Of 281,903 rows on an H200: 100 to 47 columns 0.055 ms, 0.82 of the floor, after 0.083 for `split_fragments`, cuBLAS 0.109; 128 to 128 0.099, 0.74,
//! after 0.193, cuBLAS 0.249; 602 to 41 0.234, 0.75, after 0.454, cuBLAS 0.510; 2,449,029 rows of these 2.00, 0.74. With 8 warps a block and not 16 100 to 47 took
//! 0.059. Two tiles of 64 columns, each of which reads X and splits it, took 0.111 for 128 to 128.
//!
//! For 128 columns three teams of four warps would be faster than two, which keep the tensor cores busy 63 % of the time, but the 168 registers that are
//! then left to a lane do not suffice. With two parts in the place of three they do: `warpgroup_halves`.
//!
//! By 602 columns W has room only if it is packed without the columns that fill up its tile (`Tile::compact`), and two stages of 16 warps beside it. That
//! took 0.258 ms, and 0.234 since a stage is filled again as soon as its strips are in registers (`Tile::refills_early`); 12 warps take 0.244, 8 with
//! four stages 0.262. Then the second-level cache is at 77 in 100 of its rate, as rows begin at any multiple of 8 bytes and their chunks lie in
//! more pieces than they have: chunks of 64 bytes took 0.33.
//!
//! Rows of Y written so that the caches drop them first made no difference.
//!
//! The instructions are of sm_90a, which is compute capability 9.0 and no other.

use crate::product::split_fragments::{self, Split};
use crate::product::tile::Tile;
use crate::product::tile::ring::Stage;
use crate::product::tile::shares::{SHARES, STEP_BYTES};
use crate::product::warp_product::{self, Operands, Products, Refill, Sums, load_strip};
use crate::{Epilogue, Shape};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warpgroup;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str =
    "as split_fragments, in three parts of bf16, four warps together by the instructions of sm_90a";

/// The rung that it continues.
pub const PARENT: Option<crate::GemmKernel> = Some(crate::GemmKernel::SplitFragments);

/// Bytes of an element.
const SIZE: usize = 4;

/// The greatest element of W that it is exact enough for.
///
/// An element of X below 2^-110 is cut off at 2^-133, the last place of bf16; the bound of a sum of f32 allows for 2^-126 a term.
const GREATEST: f32 = 128.0;

/// Whether parts suffice for the products with W, of so many rows, so that no tile is computed twice.
#[cfg(not(target_arch = "nvptx64"))]
pub fn suffices(w: impl Iterator<Item = f32>, depth: u32) -> bool {
    split_fragments::suffices(w, depth, GREATEST)
}

/// The tile for up to 48 columns if W has no room in shared memory but without those that it lacks.
const COMPACT: usize = 10;

/// The tile of that number, of 48, 64 or 128 columns.
pub(crate) const fn tile(choice: usize) -> Tile {
    let shares = SHARES[choice];
    let is_wide = shares.cols == 16;
    Tile {
        team: 4,
        parts: 3,
        refills_early: true,
        // Of 128 columns a lane has 64 sums and as many products.
        blocks: if is_wide { 1 } else { 2 },
        least_warps: 8,
        warps: if is_wide { 8 } else { 16 },
        warps_alone: if is_wide { 8 } else { 16 },
        warps_streaming: 8,
        line: if shares.apart { 128 } else { 256 },
        ..shares.tile(SIZE)
    }
}

/// The tile that a product takes, the launch, and whether W is streamed.
fn plan(shape: Shape) -> (usize, LaunchConfig, bool) {
    let plan = |choice: usize| {
        let (config, is_streamed) = tile(choice).plan(shape, SIZE as u32);
        (choice, config, is_streamed)
    };
    let resident = match shape.cols {
        ..=48 if shape.depth.is_multiple_of(4) => [2, COMPACT],
        ..=48 => [7, COMPACT],
        49..=64 => return plan(3),
        _ => return plan(4),
    };
    let found = resident.map(plan).into_iter().find(|found| !found.2);
    found.unwrap_or_else(|| plan(9))
}

/// Tiles of columns along x, blocks that take tiles of rows in turn along y.
pub fn launch(shape: Shape) -> LaunchConfig {
    plan(shape).1
}

/// The handle of the kernel for the shape's tile.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle(shape: Shape) -> Kernel<crate::Arguments<f32>> {
    match plan(shape) {
        (2, _, _) => warpgroup_split::<2, false>(),
        (7, _, _) => warpgroup_split::<7, false>(),
        (COMPACT, _, _) => warpgroup_split::<COMPACT, false>(),
        (9, _, _) => warpgroup_split::<9, true>(),
        (3, _, false) => warpgroup_split::<3, false>(),
        (3, _, true) => warpgroup_split::<3, true>(),
        (_, _, false) => warpgroup_split::<4, false>(),
        (_, _, true) => warpgroup_split::<4, true>(),
    }
}

/// W as the kernel reads it: for each chunk of X what [`warpgroup::m64k32_in_parts`] wants, numbered along k as X's strips are; and what
/// [`split_fragments`] has after it.
#[cfg(not(target_arch = "nvptx64"))]
pub fn pack(w: &[f32], shape: Shape) -> Vec<f32> {
    let part = |number: u32, weight: f32| {
        let rest = (0..number).fold(weight, |rest, _| rest - bf16::from_f32(rest).to_f32());
        bf16::from_f32(rest).to_bits()
    };
    let choice = plan(shape).0;
    let packed = pack_parts(w, shape, choice, tile(choice), part);
    let suffice = suffices(w.iter().copied(), shape.depth);
    split_fragments::with_plain(packed, w, suffice)
}

/// W in parts, of each of which `part` says the 16 bits: as the instructions want them for the tile of that number.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn pack_parts(
    w: &[f32],
    shape: Shape,
    choice: usize,
    tile: Tile,
    part: impl Fn(u32, f32) -> u16,
) -> Vec<f32> {
    let shares = SHARES[choice];
    let width = tile.packed_cols(shape.cols) as usize;
    let order = |i: usize| {
        let (k, i) = (i % 8, i / 8);
        let (column, block) = (i % width, i / width);
        // A strip of 16 elements for two blocks, of which lane t of four has t and t + 4 of each pair.
        let (step, member) = (block / 2, k / 2);
        let word = block % 2 * 2 + k % 2;
        let row = step * 16
            + if shares.apart {
                4 * word + member
            } else {
                4 * member + word
            };
        (row, shares.column(column / 8, column % 8, SIZE))
    };
    let parts = tile.pack(w, shape.cols, 0, order, part);
    let word = |pair: &[u16]| f32::from_bits(u32::from(pair[0]) | u32::from(pair[1]) << 16);
    parts.chunks_exact(2).map(word).collect()
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, four warps for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`pack`] makes it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is that of [`launch`]; the
/// device has compute capability 9.0.
#[kernel(
    name = "gemm_warpgroup_split",
    target = sm_90a,
    CHOICE = [2, 3, 4, 7, 10], STREAMED = [false];
    CHOICE = [3, 4, 9], STREAMED = [true]
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

/// The parts of a strip, the greatest first, two neighbours of bf16 in a word.
#[derive(Clone, Copy)]
struct Parts([[u32; 2]; 3]);

impl Parts {
    /// Each part is cut off and not rounded: the greatest does not become infinite, and the third has all that the others leave. What is not
    /// finite leaves a NaN.
    #[inline(always)]
    fn of(strip: [u32; 4]) -> Self {
        let first = pairs(strip);
        let rest = rests(strip, first);
        let second = pairs(rest);
        Self([first, second, pairs(rests(rest, second))])
    }
}

/// The words as bf16, cut off, two neighbours in one.
#[inline(always)]
fn pairs([a, b, c, d]: [u32; 4]) -> [u32; 2] {
    [warpgroup::upper_halves(a, b), warpgroup::upper_halves(c, d)]
}

/// What such pairs leave of the words.
#[inline(always)]
fn rests(words: [u32; 4], pairs: [u32; 2]) -> [u32; 4] {
    // A shift and a mask of the pair, which different units of a multiprocessor do.
    let parts = [
        pairs[0] << 16,
        pairs[0] & 0xffff_0000,
        pairs[1] << 16,
        pairs[1] & 0xffff_0000,
    ];
    let rest = |i: usize| (f32::from_bits(words[i]) - f32::from_bits(parts[i])).to_bits();
    [rest(0), rest(1), rest(2), rest(3)]
}

/// Of each part the fragments of as many steps, of each of which there are the strips of rows g and g + 8.
#[inline(always)]
fn fragments<const STEPS: usize>(strips: [[[u32; 4]; 2]; STEPS]) -> [[[u32; 4]; STEPS]; 3] {
    let parts: [[Parts; 2]; STEPS] =
        array::from_fn(|step| [Parts::of(strips[step][0]), Parts::of(strips[step][1])]);
    array::from_fn(|part| {
        array::from_fn(|step| {
            let [low, high] = [parts[step][0].0[part], parts[step][1].0[part]];
            [low[0], high[0], low[1], high[1]]
        })
    })
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
    unsafe fn add_chunk<const CHOICE: usize>(
        stage: Stage,
        sums: &mut Sums<f32>,
        mut refill: Refill<'_>,
    ) {
        // SAFETY: strips of the stage, all of whose 128 bytes of a row are written, and W; the warps of a team have as many chunks.
        unsafe {
            let apart = const { SHARES[CHOICE].apart };
            let strip = |rows, step| load_strip(stage.strip(rows, step), apart);
            if const { SHARES[CHOICE].cols == 6 } && stage.bytes <= STEP_BYTES {
                let rows = [[strip(0, 0), strip(8, 0)]];
                let products =
                    warpgroup::m64k16_in_parts::<6>(fragments(rows), stage.weights, stage.columns);
                add(sums, products);
                return;
            }
            let rows = [[strip(0, 0), strip(8, 0)], [strip(0, 1), strip(8, 1)]];
            refill.refill();
            let x = fragments(rows);
            if const { SHARES[CHOICE].cols == 6 } {
                let products = warpgroup::m64k32_in_parts::<6>(x, stage.weights, stage.columns);
                add(sums, products);
            } else if const { SHARES[CHOICE].cols == 16 } {
                let products = warpgroup::m64k32_in_parts::<16>(x, stage.weights, stage.columns);
                add(sums, products);
            } else {
                let products = warpgroup::m64k32_in_parts::<8>(x, stage.weights, stage.columns);
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
    unroll!(n in 0..16 {
        if const { n < TILES } {
            unroll!(i in 0..4 {
                sums[0][n][i] += products[n % TILES][i];
            });
        }
    });
}
