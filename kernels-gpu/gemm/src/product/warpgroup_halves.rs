//! Tensor cores of sm_90a, f32 in two parts of f16: for more than 64 columns.
//!
//! Changes from `warpgroup_split`: an element is the sum of two numbers of 11 bits and not of three of 8. So three products of parts
//! are enough where there are six, and W takes 4 bytes an element and not 6. With fewer fragments of X in registers three teams
//! of four warps have room, and not two.
//!
//! But f16 has few exponents. W, which is planned for, is multiplied by 2^10, and wants elements of 2^-24 to 2^5. Each row of X is
//! scaled chunk by chunk, by the power of two that brings its greatest element near the end of f16. The products are scaled back
//! where they are added to the sum. The second part is kept 2^12 times as great. So an element of X has all its bits down to 2^-27
//! of the row's greatest, and those below lose what is 2^-51 of the greatest. That does not show in a sum to which the greatest adds
//! more: W must have no zero, and no element below 2^-22 of its greatest ([`suffices`]).
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
use crate::product::warpgroup_split;
use crate::{Epilogue, GemmKernel, Rung, Target};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape};
use core::array;
use cuda_std::float::{Half, Narrow};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use cuda_std::warpgroup;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct WarpgroupHalves;

/// By what the second part of an element is greater than it was, so that f16 has its bits: it is what 11 bits leave.
const LOW_SCALE: f32 = 4096.0;

/// The exponent that the greatest element of a row of X in a chunk has when it is split: one less than the greatest of f16.
const EXPONENT: u32 = 14;

/// The exponent of 1 as f32 has it.
const BIAS: u32 = 127;

/// Rows whose greatest element is below 2^-99 are scaled as if it had that exponent: all numbers of f32 then have their bits.
const LEAST_EXPONENT: u32 = BIAS - 99;

/// W is multiplied by two to the power of this.
const WEIGHT_EXPONENT: u32 = 10;

/// The elements of W that it is exact enough for; the least is at least [`LEAST_SHARE`] of the greatest.
#[cfg(not(target_arch = "nvptx64"))]
const WEIGHTS: core::ops::RangeInclusive<f32> = f32::from_bits((BIAS - 24) << 23)..=32.0;

/// See [`WEIGHTS`].
#[cfg(not(target_arch = "nvptx64"))]
const LEAST_SHARE: f32 = f32::from_bits((BIAS - 22) << 23);

/// Whether parts suffice for the products with W, of so many rows, so that no tile is computed twice.
#[cfg(not(target_arch = "nvptx64"))]
pub fn suffices(w: impl Iterator<Item = f32>, depth: u32) -> bool {
    let (mut least, mut greatest) = (f32::INFINITY, 0.0_f32);
    for weight in w {
        if !WEIGHTS.contains(&weight.abs()) {
            return false;
        }
        least = least.min(weight.abs());
        greatest = greatest.max(weight.abs());
    }
    depth >= split_fragments::LEAST_DEPTH && least >= greatest * LEAST_SHARE
}

impl Rung for WarpgroupHalves {
    const SUMMARY: &'static str = "as warpgroup_split, in two parts of f16, each row of X scaled";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::WarpgroupSplit);
    const TARGET: Target = Target::Sm90a;
}

#[cfg(not(target_arch = "nvptx64"))]
impl Multiplies<f32> for WarpgroupHalves {
    fn plan(shape: Shape) -> Plan<f32> {
        chosen(shape).plan
    }

    /// For each chunk of X its greater parts and then the lesser ones, as [`warpgroup::m64k32`] wants them; and what
    /// [`split_fragments`] has after it.
    fn pack(w: Vec<f32>, shape: Shape) -> Vec<f32> {
        let part = |number: u32, weight: f32| {
            let scaled = weight * (1 << WEIGHT_EXPONENT) as f32;
            let high = f16::from_f32(scaled);
            let low = f16::from_f32((scaled - high.to_f32()) * LOW_SCALE);
            [high, low][number as usize].to_bits()
        };
        let chosen = chosen(shape);
        let packed = warpgroup_split::pack_parts(&w, shape.cols, chosen.shape, chosen.tile, part);
        let suffice = suffices(w.iter().copied(), shape.depth);
        split_fragments::with_plain(packed, &w, suffice)
    }
}

/// The instance for a product.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen(shape: Shape) -> Chosen<f32> {
    fn of<S: WarpTile>() -> Candidate<f32> {
        Candidate::new::<Warpgroup, S>(warpgroup_halves::<S>)
    }
    choose(shape, [of::<Columns128>()], of::<Columns128Streamed>())
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, four warps for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`WarpgroupHalves`] packs it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is
/// its plan's; the device has compute capability 9.0.
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
    epilogue: Epilogue<f32>,
) {
    // SAFETY: the kernel's contract.
    unsafe { warp_product::multiply::<f32, Warpgroup, S>(&x, &w, &y, &epilogue) };
}

/// The rows g and g + 8 of a chunk of X, split.
struct Rows {
    /// The fragments of two steps, of the greater parts and of the lesser ones.
    high: [[u32; 4]; 2],
    low: [[u32; 4]; 2],
    /// What the products of each row are to be multiplied by.
    factors: [f32; 2],
}

impl Rows {
    /// Of the strips of a lane; all lanes of the warp call it.
    #[inline(always)]
    fn of(strips: [[[u32; 4]; 2]; 2]) -> Self {
        let [upper, lower] = [0, 1].map(|row| Row::of(array::from_fn(|step| strips[step][row])));
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

/// A lane's elements of a row, split.
struct Row {
    high: [[u32; 2]; 2],
    low: [[u32; 2]; 2],
    factor: f32,
}

impl Row {
    /// Scaled by the row's greatest, which four lanes have together; by a power of two, and so exactly. What is not finite leaves a NaN.
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

/// By four warps together.
struct Warpgroup(Split);

impl<S: WarpTile> Products<f32, S> for Warpgroup {
    const TILE: Tile = {
        let warps = if S::SHAPE.streamed { 8 } else { 12 };
        Tile {
            blocks: 1,
            warps,
            warps_alone: warps,
            ..warpgroup_split::warpgroup_tile(S::SHAPE, 2)
        }
    };

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
            let strip = |rows, step| load_strip(stage.strip(rows, step), false);
            let rows = [[strip(0, 0), strip(8, 0)], [strip(0, 1), strip(8, 1)]];
            refill.refill();
            let x = Rows::of(rows);
            let low_bytes = 64 * <Self as Products<f32, S>>::TILE.cols;
            let products = products(&x, &stage, low_bytes);
            unroll!(n in 0..16 {
                unroll!(i in 0..4 {
                    sums[0][n][i] = products[n][i].mul_add(x.factors[i / 2], sums[0][n][i]);
                });
            });
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

/// The products of a chunk, from the lesser to the greater; the lesser parts of W begin `low_bytes` after the greater ones.
///
/// # Safety
///
/// As for [`warpgroup::m64k32`].
#[inline(always)]
#[track_caller]
unsafe fn products(x: &Rows, stage: &Stage, low_bytes: u32) -> [[f32; 4]; 16] {
    let high = stage.weights;
    let low = high.offset_bytes(low_bytes);
    // SAFETY: the caller's contract.
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
