//! XW on tensor cores, f32 as exact as on CUDA cores: each element is split into two f16 numbers; for sm_90a.
//!
//! A warpgroup (four warps) computes 64 rows and 128 columns at once. Changes from `warpgroup_split`:
//!
//! - An element is the sum of two numbers of 11 bits, not of three of 8. It needs three products instead of six, and an
//!   element of W takes 4 bytes instead of 6. X takes fewer registers, so a block has three warpgroups instead of two.
//! - f16 has few exponents, so elements are scaled by powers of two. The host multiplies W by 2^10. The kernel scales
//!   each row of X in each chunk, so that its greatest element is near the maximum of f16. The products are scaled back
//!   when they are added to the sum. The second part of an element is stored multiplied by 2^12.
//!
//! An element of X keeps all its bits if it is at least 2^-27 of its row's greatest in the chunk. A smaller one loses
//! at most 2^-51 of the greatest. That is below the error bound of the sum if the greatest element itself adds more to
//! it. So W may have no zero, no element below 2^-22 of its greatest, and only elements from 2^-24 to 2^5
//! ([`split_is_exact`]).
//!
//! When to use it: for f32 and more than 64 columns, except 129 to 192 and 257 to 288. With these, `warpgroup_split`
//! has fewer surplus columns. sm_90a is compute capability 9.0 and no other.

#[cfg(not(target_arch = "nvptx64"))]
use crate::product::split_fragments;
use crate::product::split_fragments::SplitProducts;
use crate::product::tile::TileLayout;
#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::plan::{Candidate, Chosen, choose};
use crate::product::tile::ring::Stage;
use crate::product::tile::warp_tiles::*;
use crate::product::warp_product::{self, Operands, Refill, Sums, TileProducts, load_strip};
use crate::product::warpgroup_split;
use crate::{BiasRelu, GemmKernel, RequiredArch, Rung, Strides};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch};
use core::array;
use cuda_std::float::{Float16, Narrow};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use cuda_std::warpgroup;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct WarpgroupHalves;

/// The factor by which the second part of an element is scaled, so that f16 keeps its bits: it is the rest after 11
/// bits.
const LOW_SCALE: f32 = 4096.0;

/// The exponent to which the greatest element of a row of X in a chunk is scaled: one below the maximum of f16.
const EXPONENT: u32 = 14;

/// The exponent bits of 1 in f32.
const BIAS: u32 = 127;

/// Minimum exponent bits for the scale. Rows whose greatest element is below 2^-99 are scaled as if it were 2^-99,
/// which keeps all bits of every f32.
const LEAST_EXPONENT: u32 = BIAS - 99;

/// W is scaled by two to this power.
const WEIGHT_EXPONENT: u32 = 10;

/// The absolute elements of W for which the split product is as exact as f32. The least must also be at least
/// [`MIN_SHARE`] of the greatest.
#[cfg(not(target_arch = "nvptx64"))]
const WEIGHTS: core::ops::RangeInclusive<f32> = f32::from_bits((BIAS - 24) << 23)..=32.0;

/// See [`WEIGHTS`].
#[cfg(not(target_arch = "nvptx64"))]
const MIN_SHARE: f32 = f32::from_bits((BIAS - 22) << 23);

/// Whether the split product is as exact as f32 for this W of `depth` rows. If it is not, all tiles are computed again.
#[cfg(not(target_arch = "nvptx64"))]
pub fn split_is_exact(w: impl Iterator<Item = f32>, depth: u32) -> bool {
    let (mut least, mut greatest) = (f32::INFINITY, 0.0_f32);
    for weight in w {
        if !WEIGHTS.contains(&weight.abs()) {
            return false;
        }
        least = least.min(weight.abs());
        greatest = greatest.max(weight.abs());
    }
    depth >= split_fragments::MIN_DEPTH && least >= greatest * MIN_SHARE
}

impl Rung for WarpgroupHalves {
    const SUMMARY: &'static str = "as warpgroup_split, in two parts of f16, each row of X scaled";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::WarpgroupSplit);
    const STRIDES: Strides = Strides::Aligned;
    const REQUIRED_ARCH: RequiredArch = RequiredArch::Sm90a;
}

#[cfg(not(target_arch = "nvptx64"))]
impl Multiplies<f32> for WarpgroupHalves {
    fn plan(problem: GemmProblem) -> PlannedLaunch<f32> {
        chosen(problem).plan
    }

    /// W as [`warpgroup::m64k32`] reads it, chunk by chunk, the greater parts of a chunk before the lesser ones; then
    /// what [`split_fragments`] appends.
    fn pack(w: Vec<f32>, problem: GemmProblem) -> Vec<f32> {
        let part = |number: u32, weight: f32| {
            let scaled = weight * (1 << WEIGHT_EXPONENT) as f32;
            let high = f16::from_f32(scaled);
            let low = f16::from_f32((scaled - high.to_f32()) * LOW_SCALE);
            [high, low][number as usize].to_bits()
        };
        let chosen = chosen(problem);
        let packed = warpgroup_split::pack_parts(&w, problem.cols, chosen.shape, chosen.tile, part);
        let suffice = split_is_exact(w.iter().copied(), problem.depth);
        split_fragments::with_unsplit(packed, &w, suffice)
    }
}

/// The instance for a product.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen(problem: GemmProblem) -> Chosen<f32> {
    fn of<S: WarpTile>() -> Candidate<f32> {
        Candidate::new::<WarpgroupHalvesProducts, S>(warpgroup_halves::<S>)
    }
    let all = [of::<Columns128>(), of::<Columns128Streamed>()];
    choose(
        problem,
        [of::<Columns128>()],
        of::<Columns128Streamed>(),
        all,
    )
}

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`; a warpgroup computes tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` is k x n, packed by [`WarpgroupHalves`], and `y` is m x n. They do not overlap and are aligned to
/// 16 bytes. The launch is the plan of [`WarpgroupHalves`]. The device has compute capability 9.0.
#[kernel(
    name = "gemm_warpgroup_halves",
    target = sm_90a,
    S = [Columns128], registers = 168;
    S = [Columns128Streamed]
)]
pub unsafe fn warpgroup_halves<S: WarpTile>(
    x: Dense<f32>,
    w: Dense<f32>,
    y: DenseMut<f32>,
    epilogue: BiasRelu<f32>,
) {
    // SAFETY: operands, packing and launch are as the contract says, and all threads call it.
    unsafe { warp_product::multiply::<f32, WarpgroupHalvesProducts, S>(&x, &w, &y, &epilogue) };
}

/// Rows g and g + 8 of a chunk of X, scaled and split.
struct ScaledRows {
    /// The fragments of the greater parts and of the lesser parts, for two steps each.
    high: [[u32; 4]; 2],
    low: [[u32; 4]; 2],
    /// The factors by which the products of the two rows are scaled back.
    factors: [f32; 2],
}

impl ScaledRows {
    /// Scales and splits a lane's strips, given by step and row. All lanes of the warp call it.
    #[inline(always)]
    fn of(strips: [[[u32; 4]; 2]; 2]) -> Self {
        let [upper, lower] =
            [0, 1].map(|row| ScaledRow::of(array::from_fn(|step| strips[step][row])));
        let fragments = |upper: [[u32; 2]; 2], lower: [[u32; 2]; 2]| {
            array::from_fn(|step| {
                let ([a, b], [c, d]) = (upper[step], lower[step]);
                [a, c, b, d]
            })
        };
        Self {
            high: fragments(upper.high, lower.high),
            low: fragments(upper.low, lower.low),
            factors: [upper.factor, lower.factor],
        }
    }
}

/// A lane's elements of a row, scaled and split.
struct ScaledRow {
    high: [[u32; 2]; 2],
    low: [[u32; 2]; 2],
    factor: f32,
}

impl ScaledRow {
    /// Scales the elements by a power of two, which is exact, and splits them. The scale follows from the greatest
    /// element of the row in this chunk, which its four lanes find by shuffles. An element that is not finite has a
    /// part that is NaN.
    #[inline(always)]
    fn of(strips: [[u32; 4]; 2]) -> Self {
        let mut greatest = 0.0_f32;
        unroll!(i in 0..8 {
            greatest = greatest.max(f32::from_bits(strips[i / 4][i % 4]).abs());
        });
        greatest = greatest.max(warp::shfl_xor(FULL_MASK, greatest, 1, WARP_SIZE));
        greatest = greatest.max(warp::shfl_xor(FULL_MASK, greatest, 2, WARP_SIZE));
        let exponent = (greatest.to_bits() >> 23).max(LEAST_EXPONENT);
        let scale = f32::from_bits((EXPONENT + 2 * BIAS - exponent) << 23);
        let (mut high, mut low) = ([[0; 2]; 2], [[0; 2]; 2]);
        unroll!(i in 0..4 {
            let (step, pair) = const { (i / 2, i % 2) };
            let [a, b] = [0, 1].map(|k| f32::from_bits(strips[step][2 * pair + k]) * scale);
            let word = f16::pack(a, b);
            let rest = |element: f32, bits: u32| {
                (element - Narrow::to_f32(f16::from_bits(bits as u16))) * LOW_SCALE
            };
            high[step][pair] = word;
            low[step][pair] = f16::pack(rest(a, word), rest(b, word >> 16));
        });
        Self {
            high,
            low,
            factor: f32::from_bits((exponent - EXPONENT - WEIGHT_EXPONENT) << 23),
        }
    }
}

/// Products of f32 in two parts of f16 by a warpgroup; what it needs to compute a tile again in f32.
struct WarpgroupHalvesProducts(SplitProducts);

impl<S: WarpTile> TileProducts<f32, S> for WarpgroupHalvesProducts {
    const TILE: TileLayout = {
        let warps = if S::SHAPE.streamed { 8 } else { 12 };
        TileLayout {
            blocks: 1,
            warps,
            warps_alone: warps,
            ..warpgroup_split::warpgroup_tile(S::SHAPE, 2)
        }
    };

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
            let strip = |rows, step| load_strip(stage.strip(rows, step), false);
            let rows = [[strip(0, 0), strip(8, 0)], [strip(0, 1), strip(8, 1)]];
            refill.refill();
            let x = ScaledRows::of(rows);
            let low_bytes = 64 * <Self as TileProducts<f32, S>>::TILE.cols;
            let products = products(&x, &stage, low_bytes);
            unroll!(n in 0..16 {
                unroll!(i in 0..4 {
                    sums[0][n][i] = products[n][i].mul_add(x.factors[i / 2], sums[0][n][i]);
                });
            });
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

/// The products of a chunk, added from the lesser to the greater. The lesser parts of W start `low_bytes` after the
/// greater ones.
///
/// # Safety
///
/// As for [`warpgroup::m64k32`].
#[inline(always)]
#[track_caller]
unsafe fn products(x: &ScaledRows, stage: &Stage, low_bytes: u32) -> [[f32; 4]; 16] {
    let high = stage.weights;
    let low = high.offset_bytes(low_bytes);
    // SAFETY: `m64k32` has the same contract, and W has greater and lesser parts of `low_bytes` bytes each.
    unsafe {
        let products = warpgroup::m64k32::<false>(x.high, low, [[0.0; 4]; 16]);
        let mut products = warpgroup::m64k32::<true>(x.low, high, products);
        unroll!(n in 0..16 {
            unroll!(i in 0..4 {
                products[n][i] *= const { 1.0 / LOW_SCALE };
            });
        });
        warpgroup::m64k32::<true>(x.high, high, products)
    }
}
