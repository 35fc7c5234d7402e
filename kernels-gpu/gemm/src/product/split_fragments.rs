//! Tensor cores, f32 as exact as on CUDA cores: each element as the sum of two in tf32.
//!
//! Changes from `warp_fragments`: an element is split in `high`, rounded to the 11 bits of tf32, and `low`, the rest, and a product
//! is `low high + high low + high high`, three multiplications of tensor cores, from the least to the greatest. What is lost is `low low`, 2^-22 of
//! the product at most, and the last of 24 bits of some elements, 2^-23 of each. The products of a step of 16 elements begin at zero, and are
//! added to the sum on CUDA cores, since tensor cores cut sums off where f32 rounds. The idea, and the measured errors, which are no greater
//! than those of f32: Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores while surpassing the FP32
//! theoretical peak performance, 2022; CUTLASS has it as 3xTF32. A strip of W is split where it is used: both parts in shared memory would take twice
//! the room and twice the loads, for twelve instructions less beside six multiplications.
//!
//! On CUDA cores the same way of streaming, with up to 8 rows by 16 columns a lane, was no faster than `staged` but for 16 x 16: on an H200,
//! 281,903 x 128 by 128 x 16 in 0.0657 ms after 0.0655, by 128 x 128 in 0.304 after 0.294.
//!
//! Of 281,903 rows on an H200: 128 to 16 columns 0.0455 ms after 0.068 for `staged`, 0.96 of the floor; 128 to 128 0.200 after 0.294, where cuBLAS
//! takes 0.249; 100 to 47 0.086 after 0.143, cuBLAS 0.109; 602 to 41 0.472 after 0.625, cuBLAS 0.505; 16 to 16 0.0099, 0.95 of the floor. By more than 16
//! columns it is not the memory that takes the time: a step's six multiplications wait for each other, 24 cycles each, and though they are
//! written with those of two or four tiles in turn the assembler puts one tile's after another's, to save registers. When 128 to 128 took
//! 0.210 in tiles of 64 columns, it took 0.221 in tiles of 128, and 0.239 there with two chains of three multiplications a step. Tiles of 32
//! rows split W half as often, but leave room for fewer warps: 0.100 ms for 100 to 47 when it was 0.093.
//!
//! Where parts do not suffice, a warp computes its tile of Y again, by plain f32 from global memory: if a sum is infinite or not a number (an
//! infinity has no rest; an element near the greatest rounds up to one); if there are fewer than 16 terms, whose bound leaves
//! no room for the lost bits; and if W has elements so small that `low` has no place, or so great that what the small elements of X
//! lose would show.

use crate::element::halves;
use crate::product::tile::ring::Stage;
use crate::product::tile::shares;
use crate::product::warp_product::{self, Operands, Products, Refill, Strips, Sums, load_strip};
use crate::{Epilogue, Fragment, Shape};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str = "as warp_fragments, f32 in two parts of tf32 each: as exact as f32";

/// The rung that it continues.
pub const PARENT: Option<crate::GemmKernel> = Some(crate::GemmKernel::WarpFragments);

/// Terms of a sum, at least, that the multiplication of parts is exact enough for.
pub const LEAST_DEPTH: u32 = 16;

/// The greatest element of W that it is exact enough for.
///
/// The rest of a number below 2^-113 is cut off at 2^-136, the last place of tf32; the bound of a sum of f32 allows for 2^-126 a term.
pub const GREATEST: f32 = 1024.0;

/// The tile for more than 64 columns: 64 of them.
const WIDE: usize = 3;

/// Tiles of columns along x, blocks that take tiles of rows in turn along y.
pub fn launch(shape: Shape) -> LaunchConfig {
    shares::plan::<f32>(shape, WIDE).1
}

/// The handle of the kernel for the shape's tile.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle(shape: Shape) -> Kernel<crate::Arguments<f32>> {
    match shares::plan::<f32>(shape, WIDE) {
        (0, _, _) => split_fragments::<0, false>(),
        (1, _, _) => split_fragments::<1, false>(),
        (2, _, _) => split_fragments::<2, false>(),
        (3, _, _) => split_fragments::<3, false>(),
        (8, _, _) => split_fragments::<8, false>(),
        (5, _, _) => split_fragments::<5, true>(),
        _ => split_fragments::<4, true>(),
    }
}

/// W as the kernel reads it: packed, once more by rows, and a number that is not one if parts do not suffice for it.
#[cfg(not(target_arch = "nvptx64"))]
pub fn pack(w: &[f32], shape: Shape) -> Vec<f32> {
    let packed = shares::pack(w, shape, shares::plan::<f32>(shape, WIDE).0);
    with_plain(
        packed,
        w,
        suffices(w.iter().copied(), shape.depth, GREATEST),
    )
}

/// W as the kernel reads it by parts, and what it wants for the tiles for which they do not suffice.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn with_plain(mut packed: Vec<f32>, w: &[f32], suffice: bool) -> Vec<f32> {
    packed.extend_from_slice(w);
    packed.push(if suffice { 0.0 } else { f32::NAN });
    packed
}

/// Whether parts suffice for the products with W, of so many rows, by a kernel for elements up to `greatest`, so that no tile is computed twice.
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
/// `x` is m x k, `w` k x n as [`pack`] makes it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is that of [`launch`].
#[kernel(
    name = "gemm_split_fragments",
    CHOICE = [0, 1, 2, 3, 8], STREAMED = [false];
    CHOICE = [4, 5], STREAMED = [true]
)]
pub unsafe fn split_fragments<const CHOICE: usize, const STREAMED: bool>(
    x: Dense<f32>,
    w: Dense<f32>,
    y: DenseMut<f32>,
    epilogue: Epilogue<f32>,
) {
    // SAFETY: the kernel's contract.
    unsafe { warp_product::multiply::<f32, Split, CHOICE, STREAMED>(&x, &w, &y, &epilogue) };
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

impl Products<f32> for Split {
    #[inline(always)]
    unsafe fn start(w: &Dense<f32>, packed_bytes: u64) -> Self {
        let plain = w.data.offset_bytes(packed_bytes);
        // SAFETY: what `pack` puts last.
        let suffice = unsafe { plain.load(w.rows as usize * w.cols as usize) };
        Self { plain, suffice }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk<const CHOICE: usize>(
        stage: Stage,
        sums: &mut Sums<f32>,
        refill: Refill<'_>,
    ) {
        // SAFETY: the caller's contract.
        unsafe { warp_product::add_strips::<f32, Self, CHOICE>(stage, sums, refill) };
    }

    #[inline(always)]
    unsafe fn replace<const CHOICE: usize>(
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
                    if const { m < shares::SHARES[CHOICE].rows && n < shares::SHARES[CHOICE].cols } {
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
}

impl Strips<f32> for Split {
    type Rows = [Parts; 2];
    type Weights = Parts;

    #[inline(always)]
    #[track_caller]
    unsafe fn rows(low: Shared<u32>, high: Shared<u32>, apart: bool) -> [Parts; 2] {
        // SAFETY: the caller's contract.
        unsafe { [low, high].map(|strip| Parts::of(load_strip(strip, apart))) }
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
        let width = end_column - first_column;
        let count = end_row.saturating_sub(first_row) * width;
        let mut i = warp::lane_id();
        while i < count {
            let row = (first_row + i / width) as usize;
            let column = (first_column + i % width) as usize;
            let mut sum = 0.0;
            let mut k = 0;
            while k < x.cols as usize {
                // SAFETY: elements of X, W and Y.
                unsafe {
                    let element = x.data.load(row * x.cols as usize + k);
                    let weight = self.plain.load(k * y.cols as usize + column);
                    sum = element.mul_add(weight, sum);
                }
                k += 1;
            }
            // SAFETY: a column of Y, and an element of it.
            unsafe {
                let element = epilogue.apply(sum, column);
                y.data.store(row * y.cols as usize + column, element);
            }
            i += WARP_SIZE;
        }
    }
}
