//! Tensor cores of sm_90a, f32 in three parts of bf16: four warps together, W from shared memory without registers.
//!
//! Changes from `split_fragments`: there each warp reads all of W for its 16 rows and splits it, which takes twelve instructions
//! beside six multiplications. Here W comes split by the host, and four warps multiply together (`wgmma`). The tensor cores read W
//! once for them, and twice as fast. The products of a chunk of 32 elements begin at zero and are added to the sum on CUDA cores.
//!
//! An element is the sum of three numbers of 8 bits each, X's cut off, W's rounded. Of their nine products the six greatest are
//! added, from the least on; the three others are 2^-23 and 2^-24 of a term at most and less.
//!
//! The instructions are of sm_90a, which is compute capability 9.0 and no other.

#[cfg(not(target_arch = "nvptx64"))]
use crate::product::split_fragments;
use crate::product::split_fragments::Split;
use crate::product::tile::Tile;
#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::plan::{Candidate, Chosen, choose};
use crate::product::tile::ring::Stage;
use crate::product::tile::warp_tiles::*;
use crate::product::warp_product::{self, Operands, Products, Refill, Sums, load_strip};
use crate::{Epilogue, GemmKernel, Rung, Target};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warpgroup;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct WarpgroupSplit;

/// Bytes of an element.
const SIZE: usize = 4;

/// The greatest element of W that it is exact enough for.
///
/// An element of X below 2^-110 is cut off at 2^-133, the last place of bf16; the bound of a sum of f32 allows for 2^-126 a term.
#[cfg(not(target_arch = "nvptx64"))]
const GREATEST: f32 = 128.0;

/// Whether parts suffice for the products with W, of so many rows, so that no tile is computed twice.
#[cfg(not(target_arch = "nvptx64"))]
pub fn suffices(w: impl Iterator<Item = f32>, depth: u32) -> bool {
    split_fragments::suffices(w, depth, GREATEST)
}

impl Rung for WarpgroupSplit {
    const SUMMARY: &'static str = "as split_fragments, in three parts of bf16, four warps together by the instructions of sm_90a";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::SplitFragments);
    const TARGET: Target = Target::Sm90a;
}

#[cfg(not(target_arch = "nvptx64"))]
impl Multiplies<f32> for WarpgroupSplit {
    fn plan(shape: Shape) -> Plan<f32> {
        chosen(shape).plan
    }

    /// For each chunk of X what [`warpgroup::m64k32_in_parts`] wants, numbered along k as X's strips are; and what
    /// [`split_fragments`] has after it.
    fn pack(w: Vec<f32>, shape: Shape) -> Vec<f32> {
        let part = |number: u32, weight: f32| {
            let rest = (0..number).fold(weight, |rest, _| rest - bf16::from_f32(rest).to_f32());
            bf16::from_f32(rest).to_bits()
        };
        let chosen = chosen(shape);
        let packed = pack_parts(&w, shape.cols, chosen.shape, chosen.tile, part);
        let suffice = suffices(w.iter().copied(), shape.depth);
        split_fragments::with_plain(packed, &w, suffice)
    }
}

/// The instance for a product.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen(shape: Shape) -> Chosen<f32> {
    fn of<S: WarpTile>() -> Candidate<f32> {
        Candidate::new::<Warpgroup, S>(warpgroup_split::<S>)
    }
    let resident = match shape.cols {
        ..=48 if shape.depth.is_multiple_of(4) => {
            vec![of::<Columns48>(), of::<Columns48CompactUnaligned>()]
        }
        ..=48 => vec![of::<Columns48CompactUnaligned>()],
        _ => vec![of::<Columns64>()],
    };
    choose(shape, resident, of::<Columns48StreamedUnaligned>())
}

/// W in parts, of each of which `part` says the 16 bits: as the instructions want them for the tile.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn pack_parts(
    w: &[f32],
    cols: u32,
    shape: TileShape,
    tile: Tile,
    part: impl Fn(u32, f32) -> u16,
) -> Vec<f32> {
    let width = tile.packed_cols(cols) as usize;
    let order = |i: usize| {
        let (k, i) = (i % 8, i / 8);
        let (column, block) = (i % width, i / width);
        // A strip of 16 elements for two blocks, of which lane t of four has t and t + 4 of each pair.
        let (step, member) = (block / 2, k / 2);
        let word = block % 2 * 2 + k % 2;
        let row = step * 16
            + if shape.unaligned {
                4 * word + member
            } else {
                4 * member + word
            };
        (row, shape.column(column / 8, column % 8, SIZE))
    };
    let parts = tile.pack(w, cols, 0, order, part);
    let word = |pair: &[u16]| f32::from_bits(u32::from(pair[0]) | u32::from(pair[1]) << 16);
    parts.chunks_exact(2).map(word).collect()
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, four warps for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`WarpgroupSplit`] packs it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is
/// its plan's; the device has compute capability 9.0.
#[kernel(
    name = "gemm_warpgroup_split",
    target = sm_90a,
    S = [Columns48, Columns48CompactUnaligned, Columns48StreamedUnaligned, Columns64]
)]
pub unsafe fn warpgroup_split<S: WarpTile>(
    x: Dense<f32>,
    w: Dense<f32>,
    y: DenseMut<f32>,
    epilogue: Epilogue<f32>,
) {
    // SAFETY: the kernel's contract.
    unsafe { warp_product::multiply::<f32, Warpgroup, S>(&x, &w, &y, &epilogue) };
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

/// The tile that four warps compute together, for W in so many parts.
pub(crate) const fn warpgroup_tile(shape: TileShape, parts: u32) -> Tile {
    let warps = if shape.streamed { 8 } else { 16 };
    Tile {
        team: 4,
        parts,
        refills_early: !shape.streamed,
        blocks: 2,
        least_warps: 8,
        warps,
        warps_alone: warps,
        prefetch: if shape.unaligned { 128 } else { 256 },
        ..shape.tile(SIZE)
    }
}

/// By four warps together.
struct Warpgroup(Split);

impl<S: WarpTile> Products<f32, S> for Warpgroup {
    const TILE: Tile = warpgroup_tile(S::SHAPE, 3);

    #[inline(always)]
    unsafe fn start(w: &Dense<f32>, packed_bytes: u64) -> Self {
        // SAFETY: the caller's contract.
        Self(unsafe { Split::new(w, packed_bytes) })
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk(stage: Stage, sums: &mut Sums<f32>, mut refill: Refill<'_>) {
        // SAFETY: strips of the stage, all of whose 128 bytes of a row are written, and W; the warps of a team have as many chunks.
        unsafe {
            let unaligned = const { S::SHAPE.unaligned };
            let strip = |rows, step| load_strip(stage.strip(rows, step), unaligned);
            if const { S::SHAPE.column_fragments == 6 } && stage.bytes <= STEP_BYTES {
                let rows = [[strip(0, 0), strip(8, 0)]];
                let products =
                    warpgroup::m64k16_in_parts::<6>(fragments(rows), stage.weights, stage.columns);
                add(sums, products);
                return;
            }
            let rows = [[strip(0, 0), strip(8, 0)], [strip(0, 1), strip(8, 1)]];
            refill.refill();
            let x = fragments(rows);
            if const { S::SHAPE.column_fragments == 6 } {
                let products = warpgroup::m64k32_in_parts::<6>(x, stage.weights, stage.columns);
                add(sums, products);
            } else {
                let products = warpgroup::m64k32_in_parts::<8>(x, stage.weights, stage.columns);
                add(sums, products);
            }
        }
    }

    #[inline(always)]
    unsafe fn replace(
        &self,
        operands: &Operands<'_, f32>,
        rows: (u32, u32),
        columns: (u32, u32),
        sums: &Sums<f32>,
    ) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.0.replace_sums::<S>(operands, rows, columns, sums) }
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
