//! Tensor cores, f32 as exact as on CUDA cores: each element as the sum of two in tf32.
//!
//! Changes from `warp_fragments`: an element is split in `high`, rounded to the 11 bits of tf32, and `low`, the rest. A product is
//! `low high + high low + high high`: three multiplications of tensor cores, from the least to the greatest. What is lost is
//! `low low`, 2^-22 of the product at most, and the last of 24 bits of some elements, 2^-23 of each. The products of a step of 16
//! elements begin at zero and are added to the sum on CUDA cores, since tensor cores cut sums off where f32 rounds. The idea, and
//! the measured errors, which are no greater than those of f32: Ootomo and Yokota, Recovering single precision accuracy from
//! Tensor Cores while surpassing the FP32 theoretical peak performance, 2022; CUTLASS has it as 3xTF32.
//!
//! Where parts do not suffice, a warp computes its tile of Y again, by plain f32 from global memory:
//!
//! - a sum is infinite or not a number: an infinity has no rest, and an element near the greatest rounds up to one;
//! - there are fewer than 16 terms, whose bound leaves no room for the lost bits;
//! - W has elements so small that `low` has no place, or so great that what the small elements of X lose would show.

use crate::element::halves;
use crate::product::tile::Tile;
#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::plan::{Candidate, Chosen, choose};
use crate::product::tile::ring::Stage;
use crate::product::tile::warp_tiles::*;
use crate::product::warp_product::{self, Operands, Products, Refill, Strips, Sums, load_strip};
use crate::{Epilogue, Fragment, GemmKernel, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct SplitFragments;

/// Terms of a sum, at least, that the multiplication of parts is exact enough for.
pub const LEAST_DEPTH: u32 = 16;

/// The greatest element of W that it is exact enough for.
///
/// The rest of a number below 2^-113 is cut off at 2^-136, the last place of tf32; the bound of a sum of f32 allows for 2^-126 a term.
pub const GREATEST: f32 = 1024.0;

impl Rung for SplitFragments {
    const SUMMARY: &'static str =
        "as warp_fragments, f32 in two parts of tf32 each: as exact as f32";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::WarpFragments);
}

#[cfg(not(target_arch = "nvptx64"))]
impl Multiplies<f32> for SplitFragments {
    fn plan(shape: Shape) -> Plan<f32> {
        chosen(shape).plan
    }

    /// Packed, once more by rows, and a number that is not one if parts do not suffice.
    fn pack(w: Vec<f32>, shape: Shape) -> Vec<f32> {
        let chosen = chosen(shape);
        let packed = pack_strips(&w, shape.cols, chosen.shape, chosen.tile);
        let suffice = suffices(w.iter().copied(), shape.depth, GREATEST);
        with_plain(packed, &w, suffice)
    }
}

/// The instance for a product.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen(shape: Shape) -> Chosen<f32> {
    fn of<S: WarpTile>() -> Candidate<f32> {
        Candidate::new::<Split, S>(split_fragments::<S>)
    }
    let is_short = u64::from(shape.depth) * size_of::<f32>() as u64 <= SHORT_ROW_BYTES;
    let resident = match shape.cols {
        ..=16 if is_short => of::<Columns16ShortRows>(),
        ..=16 => of::<Columns16>(),
        17..=48 => of::<Columns48>(),
        _ => of::<Columns64>(),
    };
    choose(shape, [resident], of::<Rows32Columns48Streamed>())
}

/// W as the kernel reads it by parts, and what it wants for the tiles for which they do not suffice.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn with_plain(mut packed: Vec<f32>, w: &[f32], suffice: bool) -> Vec<f32> {
    packed.extend_from_slice(w);
    packed.push(if suffice { 0.0 } else { f32::NAN });
    packed
}

/// Whether parts suffice for the products with W, of so many rows, by a kernel for elements up to `greatest`, so that no tile is
/// computed twice.
#[cfg(not(target_arch = "nvptx64"))]
pub fn suffices(mut w: impl Iterator<Item = f32>, depth: u32, greatest: f32) -> bool {
    const LEAST: f32 = f32::from_bits((127 - 100) << 23);
    depth >= LEAST_DEPTH
        && w.all(|weight| weight == 0.0 || (LEAST..=greatest).contains(&weight.abs()))
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a warp for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`SplitFragments`] packs it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is
/// its plan's.
#[kernel(
    name = "gemm_split_fragments",
    S = [Columns16, Columns16ShortRows, Columns48, Columns64, Rows32Columns48Streamed]
)]
pub unsafe fn split_fragments<S: WarpTile>(
    x: Dense<f32>,
    w: Dense<f32>,
    y: DenseMut<f32>,
    epilogue: Epilogue<f32>,
) {
    // SAFETY: the kernel's contract.
    unsafe { warp_product::multiply::<f32, Split, S>(&x, &w, &y, &epilogue) };
}

/// By parts.
pub(crate) struct Split {
    /// W by rows.
    plain: Global<f32>,
    /// 0, or NaN if parts do not suffice for W.
    suffice: f32,
}

/// The high and the low parts of a strip.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    pub high: [u32; 4],
    pub low: [u32; 4],
}

impl Parts {
    #[inline(always)]
    pub fn of(strip: [u32; 4]) -> Self {
        // Rounded to nearest; a NaN that becomes a number leaves a NaN as the rest.
        let high = strip.map(|bits| bits.wrapping_add(0x1000) & !0x1fff);
        let rest = |i: usize| (f32::from_bits(strip[i]) - f32::from_bits(high[i])).to_bits();
        Self {
            high,
            // The multiplier sees the upper 19 bits.
            low: [rest(0), rest(1), rest(2), rest(3)],
        }
    }
}

impl<S: WarpTile> Products<f32, S> for Split {
    const TILE: Tile = S::SHAPE.tile(size_of::<f32>());

    #[inline(always)]
    unsafe fn start(w: &Dense<f32>, packed_bytes: u64) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Self::new(w, packed_bytes) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk(stage: Stage, sums: &mut Sums<f32>, refill: Refill<'_>) {
        // SAFETY: the caller's contract.
        unsafe { warp_product::add_strips::<f32, Self, S>(stage, sums, refill) };
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
        unsafe { self.replace_sums::<S>(operands, rows, columns, sums) }
    }
}

impl Strips<f32> for Split {
    type Rows = [Parts; 2];
    type Weights = Parts;

    #[inline(always)]
    #[track_caller]
    unsafe fn rows(low: Shared<u32>, high: Shared<u32>, unaligned: bool) -> [Parts; 2] {
        // SAFETY: the caller's contract.
        unsafe { [low, high].map(|strip| Parts::of(load_strip(strip, unaligned))) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn weights(strip: Shared<u32>) -> Parts {
        // SAFETY: the caller's contract.
        Parts::of(unsafe { strip.load4(0) })
    }

    #[inline(always)]
    #[track_caller]
    fn add<const COUNT: usize>(
        x: [Parts; 2],
        w: [Parts; COUNT],
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

impl Split {
    /// W as [`with_plain`] has it.
    ///
    /// # Safety
    ///
    /// As [`Products::start`].
    #[inline(always)]
    pub unsafe fn new(w: &Dense<f32>, packed_bytes: u64) -> Self {
        let plain = w.data.offset_bytes(packed_bytes);
        // SAFETY: what `with_plain` puts last.
        let suffice = unsafe { plain.load(w.rows as usize * w.cols as usize) };
        Self { plain, suffice }
    }

    /// Computes the tile anew if one of its sums is not finite, or if parts do not suffice, and says whether it has.
    ///
    /// # Safety
    ///
    /// As [`Products::replace`].
    #[inline(always)]
    pub unsafe fn replace_sums<S: WarpTile>(
        &self,
        operands: &Operands<'_, f32>,
        rows: (u32, u32),
        columns: (u32, u32),
        sums: &Sums<f32>,
    ) -> bool {
        // Not a number if one of the sums is not finite.
        let mut probe = self.suffice;
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
            // SAFETY: the caller's contract.
            unsafe { self.multiply_plainly(operands, rows, columns) };
        }
        replaces
    }

    /// Computes and writes elements of Y by plain f32, a lane one at a time.
    ///
    /// # Safety
    ///
    /// As [`Products::replace`].
    #[inline(always)]
    unsafe fn multiply_plainly(
        &self,
        operands: &Operands<'_, f32>,
        (first_row, end_row): (u32, u32),
        (first_column, end_column): (u32, u32),
    ) {
        let Operands { x, y, epilogue } = operands;
        // The compiler would write the loop over k out if it knew its step.
        let one = thread::opaque(1) as usize;
        for row in first_row as usize..end_row as usize {
            thread::keep_rolled();
            let mut column = first_column + warp::lane_id();
            while column < end_column {
                thread::keep_rolled();
                let mut sum = 0.0;
                let mut k = 0;
                // SAFETY: elements of X, W and Y.
                unsafe {
                    while k < x.cols as usize {
                        thread::keep_rolled();
                        let element = x.data.load(row * x.cols as usize + k);
                        let weight = self.plain.load(k * y.cols as usize + column as usize);
                        sum = element.mul_add(weight, sum);
                        k += one;
                    }
                    let element = epilogue.apply(sum, column as usize);
                    y.data
                        .store(row * y.cols as usize + column as usize, element);
                }
                column += WARP_SIZE;
            }
        }
    }
}
