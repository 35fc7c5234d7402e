//! XW on tensor cores, f32 as exact as on CUDA cores: each element is split into three bf16 numbers; for sm_90a.
//!
//! A warpgroup (four warps) computes 64 rows and 48 or 64 columns at once, 16 rows each warp. Each warp streams its own
//! rows of X through its ring, and splits them in registers. An element of X is read once for each tile of columns.
//!
//! Changes from `split_fragments`:
//!
//! - Four warps multiply together (`wgmma`), and the tensor cores read W from shared memory, once for all four. In
//!   `split_fragments` each warp reads all of W for its 16 rows.
//! - The host splits W. Splitting it in the kernel takes twelve instructions for six multiplications.
//! - An element is the sum of three numbers of 8 bits; those of X are truncated, those of W rounded. The six greatest
//!   of the nine products are added, from the least on. The other three are at most 2^-23 of a term.
//! - The products of 32 elements, not 16, are summed from zero and then added to the sum on CUDA cores.
//!
//! When to use it: for f32 and 17 to 64 columns; for 129 to 192 and 257 to 288, where tiles of 128 columns have many
//! surplus columns; for other numbers from 65 on if `warpgroup_halves` is not exact enough. sm_90a is compute
//! capability 9.0 and no other.

#[cfg(not(target_arch = "nvptx64"))]
use crate::product::split_fragments;
use crate::product::split_fragments::SplitProducts;
use crate::product::tile::TileLayout;
#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::plan::{Candidate, Chosen, choose};
use crate::product::tile::ring::Stage;
use crate::product::tile::warp_tiles::*;
use crate::product::warp_product::{self, Operands, Refill, Sums, TileProducts, load_strip};
use crate::{BiasRelu, GemmKernel, RequiredArch, Rung, Strides};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warpgroup;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct WarpgroupSplit;

/// Bytes of an element.
const SIZE: usize = 4;

/// Maximum absolute element of W for which the split product is as exact as f32.
///
/// An element of X below 2^-110 is truncated at 2^-133, the last place of bf16. The error bound of an f32 sum allows
/// 2^-126 for each term.
#[cfg(not(target_arch = "nvptx64"))]
const MAX_WEIGHT: f32 = 128.0;

/// Whether the split product is as exact as f32 for this W of `depth` rows. If it is not, all tiles are computed again.
#[cfg(not(target_arch = "nvptx64"))]
pub fn split_is_exact(w: impl Iterator<Item = f32>, depth: u32) -> bool {
    split_fragments::split_is_exact(w, depth, MAX_WEIGHT)
}

impl Rung for WarpgroupSplit {
    const SUMMARY: &'static str = "as split_fragments, in three parts of bf16, \
        four warps together by the instructions of sm_90a";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::SplitFragments);
    const STRIDES: Strides = Strides::Aligned;
    const REQUIRED_ARCH: RequiredArch = RequiredArch::Sm90a;
}

#[cfg(not(target_arch = "nvptx64"))]
impl Multiplies<f32> for WarpgroupSplit {
    fn plan(problem: GemmProblem) -> PlannedLaunch<f32> {
        chosen(problem).plan
    }

    /// W as [`warpgroup::m64k32_in_parts`] reads it, chunk by chunk, with k in the order of X's strips; then what
    /// [`split_fragments`] appends.
    fn pack(w: Vec<f32>, problem: GemmProblem) -> Vec<f32> {
        let part = |number: u32, weight: f32| {
            let rest = (0..number).fold(weight, |rest, _| rest - bf16::from_f32(rest).to_f32());
            bf16::from_f32(rest).to_bits()
        };
        let chosen = chosen(problem);
        let packed = pack_parts(&w, problem.cols, chosen.shape, chosen.tile, part);
        let suffice = split_is_exact(w.iter().copied(), problem.depth);
        split_fragments::with_unsplit(packed, &w, suffice)
    }
}

/// The instance for a product.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen(problem: GemmProblem) -> Chosen<f32> {
    fn of<S: WarpTile>() -> Candidate<f32> {
        Candidate::new::<WarpgroupSplitProducts, S>(warpgroup_split::<S>)
    }
    let resident = match problem.cols {
        ..=48 if problem.depth.is_multiple_of(4) => {
            vec![of::<Columns48>(), of::<Columns48CompactUnaligned>()]
        }
        ..=48 => vec![of::<Columns48CompactUnaligned>()],
        // Tiles of 48 columns if they have fewer surplus columns.
        cols if cols.next_multiple_of(48) < cols.next_multiple_of(64) => vec![of::<Columns48>()],
        _ => vec![of::<Columns64>()],
    };
    let all = [
        of::<Columns48>(),
        of::<Columns48CompactUnaligned>(),
        of::<Columns48StreamedUnaligned>(),
        of::<Columns64>(),
    ];
    choose(problem, resident, of::<Columns48StreamedUnaligned>(), all)
}

/// W split into parts, packed as the warpgroup instructions read it for the tile. `part(p, element)` is the 16 bits of
/// part `p` of an element.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn pack_parts(
    w: &[f32],
    cols: u32,
    shape: TileShape,
    tile: TileLayout,
    part: impl Fn(u32, f32) -> u16,
) -> Vec<f32> {
    let width = tile.packed_cols(cols) as usize;
    let order = |i: usize| {
        let (k, i) = (i % 8, i / 8);
        let (column, block) = (i % width, i / width);
        // 16 elements of k are two blocks of 8. In a block, lane t of the four has elements 2t and 2t + 1.
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

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`; a warpgroup computes tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` is k x n, packed by [`WarpgroupSplit`], and `y` is m x n. They do not overlap and are aligned to
/// 16 bytes. The launch is the plan of [`WarpgroupSplit`]. The device has compute capability 9.0.
#[kernel(
    name = "gemm_warpgroup_split",
    target = sm_90a,
    S = [Columns48, Columns48CompactUnaligned, Columns48StreamedUnaligned, Columns64]
)]
pub unsafe fn warpgroup_split<S: WarpTile>(
    x: Dense<f32>,
    w: Dense<f32>,
    y: DenseMut<f32>,
    epilogue: BiasRelu<f32>,
) {
    // SAFETY: operands, packing and launch are as the contract says, and all threads call it.
    unsafe { warp_product::multiply::<f32, WarpgroupSplitProducts, S>(&x, &w, &y, &epilogue) };
}

/// A strip of f32, each element split into three bf16 numbers; the greatest parts first, two neighbours in a word.
#[derive(Clone, Copy)]
struct Bf16Parts([[u32; 2]; 3]);

impl Bf16Parts {
    /// Splits a strip. Each part is truncated, not rounded: so the first does not become infinite, and the third has
    /// all bits that the others leave. An element that is not finite has a part that is NaN.
    #[inline(always)]
    fn of(strip: [u32; 4]) -> Self {
        let first = pairs(strip);
        let rest = rests(strip, first);
        let second = pairs(rest);
        Self([first, second, pairs(rests(rest, second))])
    }
}

/// Four f32 truncated to bf16, two neighbours in a word.
#[inline(always)]
fn pairs([a, b, c, d]: [u32; 4]) -> [u32; 2] {
    [warpgroup::upper_halves(a, b), warpgroup::upper_halves(c, d)]
}

/// Four f32 minus the bf16 numbers in `pairs`.
#[inline(always)]
fn rests(words: [u32; 4], pairs: [u32; 2]) -> [u32; 4] {
    // A shift and a mask: different units of a multiprocessor execute them.
    let parts = [
        pairs[0] << 16,
        pairs[0] & 0xffff_0000,
        pairs[1] << 16,
        pairs[1] & 0xffff_0000,
    ];
    let rest = |i: usize| (f32::from_bits(words[i]) - f32::from_bits(parts[i])).to_bits();
    [rest(0), rest(1), rest(2), rest(3)]
}

/// Splits the strips of rows g and g + 8 for each step. The result has, for each part, a fragment for each step.
#[inline(always)]
fn fragments<const STEPS: usize>(strips: [[[u32; 4]; 2]; STEPS]) -> [[[u32; 4]; STEPS]; 3] {
    let parts: [[Bf16Parts; 2]; STEPS] = array::from_fn(|step| {
        [
            Bf16Parts::of(strips[step][0]),
            Bf16Parts::of(strips[step][1]),
        ]
    });
    array::from_fn(|part| {
        array::from_fn(|step| {
            let [low, high] = [parts[step][0].0[part], parts[step][1].0[part]];
            [low[0], high[0], low[1], high[1]]
        })
    })
}

/// The layout of a tile whose W is split into `parts` numbers, for kernels in which a warpgroup multiplies together.
pub(crate) const fn warpgroup_tile(shape: TileShape, parts: u32) -> TileLayout {
    let warps = if shape.streamed { 8 } else { 16 };
    TileLayout {
        warps_together: 4,
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

/// Products of f32 in three parts of bf16 by a warpgroup; what it needs to compute a tile again in f32.
struct WarpgroupSplitProducts(SplitProducts);

impl<S: WarpTile> TileProducts<f32, S> for WarpgroupSplitProducts {
    const TILE: TileLayout = warpgroup_tile(S::SHAPE, 3);

    #[inline(always)]
    unsafe fn start(w: &Dense<f32>, packed_bytes: u64) -> Self {
        // SAFETY: `w` is the kernel's argument, which `with_unsplit` has packed.
        Self(unsafe { SplitProducts::new(w, packed_bytes) })
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk(stage: Stage, sums: &mut Sums<f32>, mut refill: Refill<'_>) {
        // SAFETY: the stage is written by the contract, with zeros past a row's end, so all strips of its 128 bytes
        // are. W is packed for the tile. The four warps have equally many chunks, so all of them call it together.
        // `refill` comes after all strips are in registers.
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
    unsafe fn recompute(
        &self,
        operands: &Operands<'_, f32>,
        rows: (u32, u32),
        columns: (u32, u32),
        sums: &Sums<f32>,
    ) -> bool {
        // SAFETY: both functions have the same contract.
        unsafe {
            self.0
                .recompute_if_inexact::<S>(operands, rows, columns, sums)
        }
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
