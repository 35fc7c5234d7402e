//! XW on tensor cores, f32 as exact as on CUDA cores: each element is split into the sum of two tf32 numbers.
//!
//! Changes from `warp_fragments`: an element is `high`, rounded to the 11 bits of tf32, plus `low`, the rest. A product
//! takes three multiplications, `low * high + high * low + high * high`, so an element of X costs three times as many
//! tensor core instructions. Lost are `low * low`, at most 2^-22 of the product, and the last bit of some elements,
//! 2^-23. Tensor cores truncate sums where f32 rounds. So the products of 16 elements are summed there from zero, and
//! that sum is added on CUDA cores.
//!
//! A warp computes its tile again in f32, from global memory, if the parts are not exact enough:
//!
//! - A sum is infinite or NaN. An infinite element has no rest, and an element near the maximum rounds to infinity.
//! - There are fewer than 16 terms. Their error bound leaves no room for the lost bits.
//! - W has elements too small for `low`, or so great that the bits which small elements of X lose would matter.
//!
//! Source: Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
//! theoretical peak performance", 2022, who measured errors no greater than those of f32; 3xTF32 in CUTLASS.

use crate::element::halves;
use crate::product::tile::TileLayout;
#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::plan::{Candidate, Chosen, choose};
use crate::product::tile::ring::Stage;
use crate::product::tile::warp_tiles::*;
use crate::product::warp_product::{
    self, Operands, Refill, StripProducts, Sums, TileProducts, load_strip,
};
use crate::{BiasRelu, GemmKernel, Rung, Strides, TensorCoreElement};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct SplitFragments;

/// Minimum number of terms of a sum for which the split product is as exact as f32.
pub const MIN_DEPTH: u32 = 16;

/// Maximum absolute element of W for which the split product is as exact as f32.
///
/// The rest of a number below 2^-113 is truncated at 2^-136, the last place of tf32. The error bound of an f32 sum
/// allows 2^-126 for each term.
pub const MAX_WEIGHT: f32 = 1024.0;

impl Rung for SplitFragments {
    const SUMMARY: &'static str =
        "as warp_fragments, f32 in two parts of tf32 each: as exact as f32";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::WarpFragments);
    const STRIDES: Strides = Strides::Aligned;
}

#[cfg(not(target_arch = "nvptx64"))]
impl Multiplies<f32> for SplitFragments {
    fn plan(problem: GemmProblem) -> PlannedLaunch<f32> {
        chosen(problem).plan
    }

    /// W packed, then W row-major, then 0, or NaN if the split product is not exact enough for W.
    fn pack(w: Vec<f32>, problem: GemmProblem) -> Vec<f32> {
        let chosen = chosen(problem);
        let packed = pack_strips(&w, problem.cols, chosen.shape, chosen.tile);
        let suffice = split_is_exact(w.iter().copied(), problem.depth, MAX_WEIGHT);
        with_unsplit(packed, &w, suffice)
    }
}

/// The instance for a product.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen(problem: GemmProblem) -> Chosen<f32> {
    fn of<S: WarpTile>() -> Candidate<f32> {
        Candidate::new::<SplitProducts, S>(split_fragments::<S>)
    }
    let is_short = u64::from(problem.depth) * size_of::<f32>() as u64 <= SHORT_ROW_BYTES;
    let resident = match problem.cols {
        ..=16 if is_short => of::<Columns16ShortRows>(),
        ..=16 => of::<Columns16>(),
        17..=48 => of::<Columns48>(),
        _ => of::<Columns64>(),
    };
    let all = [
        of::<Columns16>(),
        of::<Columns16ShortRows>(),
        of::<Columns48>(),
        of::<Columns64>(),
        of::<Rows32Columns48Streamed>(),
    ];
    choose(problem, [resident], of::<Rows32Columns48Streamed>(), all)
}

/// Appends to packed W what the kernel needs to compute tiles again in f32: W row-major, then 0, or NaN if all tiles
/// have to be computed again.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn with_unsplit(mut packed: Vec<f32>, w: &[f32], suffice: bool) -> Vec<f32> {
    packed.extend_from_slice(w);
    packed.push(if suffice { 0.0 } else { f32::NAN });
    packed
}

/// Whether the split product is as exact as f32 for this W of `depth` rows. If it is not, all tiles are computed again.
///
/// `greatest` is the maximum absolute element of W that the kernel takes.
#[cfg(not(target_arch = "nvptx64"))]
pub fn split_is_exact(mut w: impl Iterator<Item = f32>, depth: u32, greatest: f32) -> bool {
    const MIN_WEIGHT: f32 = f32::from_bits((127 - 100) << 23);
    depth >= MIN_DEPTH
        && w.all(|weight| weight == 0.0 || (MIN_WEIGHT..=greatest).contains(&weight.abs()))
}

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`; a warp computes tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` is k x n, packed by [`SplitFragments`], and `y` is m x n. They do not overlap and are aligned to
/// 16 bytes. The launch is the plan of [`SplitFragments`].
#[kernel(
    name = "gemm_split_fragments",
    S = [Columns16, Columns16ShortRows, Columns48, Columns64, Rows32Columns48Streamed]
)]
pub unsafe fn split_fragments<S: WarpTile>(
    x: Dense<f32>,
    w: Dense<f32>,
    y: DenseMut<f32>,
    epilogue: BiasRelu<f32>,
) {
    // SAFETY: operands, packing and launch are as the contract says, and all threads call it.
    unsafe { warp_product::multiply::<f32, SplitProducts, S>(&x, &w, &y, &epilogue) };
}

/// Products of f32 in two parts of tf32; what a warp needs to compute a tile again in f32.
pub(crate) struct SplitProducts {
    /// W in f32, row-major.
    unsplit: Global<f32>,
    /// 0, or NaN if the split product is not exact enough for W.
    poison: f32,
}

/// A strip of f32, each element split into two tf32 numbers.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an element has these two parts")]
pub struct Tf32Parts {
    /// The elements, rounded to tf32.
    pub high: [u32; 4],
    /// The rest of each.
    pub low: [u32; 4],
}

impl Tf32Parts {
    /// Four zeros.
    pub const ZERO: Self = Self {
        high: [0; 4],
        low: [0; 4],
    };

    /// Splits four elements, which are given by their bits.
    #[inline(always)]
    pub fn of(strip: [u32; 4]) -> Self {
        // Rounded to nearest. If a NaN becomes a number, the rest is NaN.
        let high = strip.map(|bits| bits.wrapping_add(0x1000) & !0x1fff);
        let rest = |i: usize| (f32::from_bits(strip[i]) - f32::from_bits(high[i])).to_bits();
        Self {
            high,
            // Tensor cores read the upper 19 bits alone.
            low: [rest(0), rest(1), rest(2), rest(3)],
        }
    }
}

impl<S: WarpTile> TileProducts<f32, S> for SplitProducts {
    const TILE: TileLayout = S::SHAPE.tile(size_of::<f32>());

    #[inline(always)]
    unsafe fn start(w: &Dense<f32>, packed_bytes: u64) -> Self {
        // SAFETY: `w` is the kernel's argument, which `with_unsplit` has packed.
        unsafe { Self::new(w, packed_bytes) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk(stage: Stage, sums: &mut Sums<f32>, refill: Refill<'_>) {
        // SAFETY: the stage is written and all lanes call it, by the contract.
        unsafe { warp_product::add_strips::<f32, Self, S>(stage, sums, refill) };
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
        unsafe { self.recompute_if_inexact::<S>(operands, rows, columns, sums) }
    }
}

impl StripProducts<f32> for SplitProducts {
    type XStrips = [Tf32Parts; 2];
    type WStrip = Tf32Parts;

    #[inline(always)]
    #[track_caller]
    unsafe fn load_x(low: Shared<u32>, high: Shared<u32>, unaligned: bool) -> [Tf32Parts; 2] {
        // SAFETY: both strips are written, by the contract.
        unsafe { [low, high].map(|strip| Tf32Parts::of(load_strip(strip, unaligned))) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn load_w(strip: Shared<u32>) -> Tf32Parts {
        // SAFETY: the strip is written, by the contract; packed strips are aligned to 16 bytes.
        Tf32Parts::of(unsafe { strip.load4(0) })
    }

    #[inline(always)]
    #[track_caller]
    fn add<const COUNT: usize>(
        x: [Tf32Parts; 2],
        w: [Tf32Parts; COUNT],
        sums: [[f32; 4]; COUNT],
    ) -> [[f32; 4]; COUNT] {
        let (low, high) = (x.map(|x| x.low), x.map(|x| x.high));
        let (low, high) = (low.map(halves), high.map(halves));
        let mut step = [[0.0; 4]; COUNT];
        unroll!(product in 0..4 {
            unroll!(half in 0..2 {
                unroll!(n in 0..4 {
                    if const { product < 3 && n < COUNT } {
                        let x = if const { product == 0 } { low } else { high };
                        let w = w[n % COUNT];
                        let w = halves(if const { product == 1 } { w.low } else { w.high });
                        let step = &mut step[n % COUNT];
                        *step = f32::multiply(x[0][half], x[1][half], w[half], *step);
                    }
                });
            });
        });
        array::from_fn(|n| array::from_fn(|i| sums[n][i] + step[n][i]))
    }
}

impl SplitProducts {
    /// Reads what `with_unsplit` has appended to packed W.
    ///
    /// # Safety
    ///
    /// As for [`TileProducts::start`]; `with_unsplit` has packed W.
    #[inline(always)]
    pub unsafe fn new(w: &Dense<f32>, packed_bytes: u64) -> Self {
        let unsplit = w.data.offset_bytes(packed_bytes);
        // SAFETY: after the elements of W, `with_unsplit` appends one number.
        let poison = unsafe { unsplit.load(w.rows as usize * w.cols as usize) };
        Self { unsplit, poison }
    }

    /// Computes and writes the tile in f32 if one of its sums is not finite, or if the split product is not exact
    /// enough for W. Returns whether it has.
    ///
    /// # Safety
    ///
    /// As for [`TileProducts::recompute`].
    #[inline(always)]
    pub unsafe fn recompute_if_inexact<S: WarpTile>(
        &self,
        operands: &Operands<'_, f32>,
        rows: (u32, u32),
        columns: (u32, u32),
        sums: &Sums<f32>,
    ) -> bool {
        // NaN if one of the sums is not finite: infinity times 0 is NaN.
        let mut probe = self.poison;
        unroll!(m in 0..2 {
            unroll!(n in 0..16 {
                unroll!(i in 0..4 {
                    if const { m < S::SHAPE.row_fragments && n < S::SHAPE.column_fragments } {
                        probe = sums[m][n][i].mul_add(0.0, probe);
                    }
                });
            });
        });
        let replaces = warp::any(FULL_MASK, probe.is_nan());
        if replaces {
            // SAFETY: both functions have the same contract.
            unsafe { self.recompute_in_f32(operands, rows, columns) };
        }
        replaces
    }

    /// Computes and writes a tile of Y in f32 on CUDA cores, each lane one element at a time.
    ///
    /// # Safety
    ///
    /// As for [`TileProducts::recompute`].
    #[inline(always)]
    unsafe fn recompute_in_f32(
        &self,
        operands: &Operands<'_, f32>,
        (first_row, end_row): (u32, u32),
        (first_column, end_column): (u32, u32),
    ) {
        let Operands { x, y, epilogue } = operands;
        // With a constant step, the compiler would unroll the loop over k.
        let one = thread::opaque(1) as usize;
        for row in first_row as usize..end_row as usize {
            thread::keep_rolled();
            let mut column = first_column + warp::lane_id();
            while column < end_column {
                thread::keep_rolled();
                let mut sum = 0.0;
                let mut k = 0;
                // SAFETY: `row` and `column` are a row and a column of Y by the contract, and so of X and W;
                // `k < x.cols`, which is the number of rows of W.
                unsafe {
                    while k < x.cols as usize {
                        thread::keep_rolled();
                        let element = x.data.load(row * x.stride as usize + k);
                        let weight = self.unsplit.load(k * y.cols as usize + column as usize);
                        sum = element.mul_add(weight, sum);
                        k += one;
                    }
                    let element = epilogue.apply(sum, column as usize);
                    y.data
                        .store(row * y.stride as usize + column as usize, element);
                }
                column += WARP_SIZE;
            }
        }
    }
}
