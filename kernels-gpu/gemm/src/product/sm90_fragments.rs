//! Tensor cores, f64: the multiplication that sm_90 brought.
//!
//! Changes from `warp_fragments`: one instruction multiplies 16 x 8 by 8 x 8 ([`m16n8k8`](cuda_std::mma::m16n8k8)) where four multiplied 8 x 4 by
//! 4 x 8. An H200 does 65.6 TFLOP/s with it and 33.1 with those. PTX for sm_80 does not know it: the kernel
//! is compiled for sm_90.
//!
//! Of 281,903 rows on an H200: 128 to 16 columns 0.0791 ms, where cuBLAS takes 0.0793 and the floor is 0.0818; 128 to 128 0.203, 0.69 of the floor,
//! cuBLAS 0.2135; 100 to 47 0.090, 0.93, cuBLAS 0.169; 602 to 41 0.444, 0.78, cuBLAS 0.671. By 128 columns it is the multiplications: at
//! that rate they alone take 0.141 ms. Before a strip was loaded as f64, and copies and stores took fewer instructions, 128 to 128 took 0.236,
//! and 0.252 in two tiles of 64 columns.
//!
//! The second-level cache gets 256 neighbouring bytes of X at once (`Tile::line`): 2,449,029 rows, 128 to 16, 0.6565 ms after 0.663, and 0.647
//! with 4 warps a block in the place of 8, cuBLAS 0.650.
//!
//! By 602 columns W fits the shared memory only if it is packed without the columns that fill up its tile (`Tile::compact`), beside four stages of 64 bytes
//! a row for 8 warps. That took 0.464 ms, and 0.447 since a stage is filled again as soon as its strips are in registers (`Tile::refills_early`); with
//! lines of 128 bytes 0.444. When W came with the chunks of X and warps kept step it was 0.487: two blocks of 8 warps with tiles of 16 rows;
//! one with tiles of 32 rows took 0.58, lines of 128 bytes 0.488, none 0.500.

use crate::product::tile::Tile;
use crate::product::tile::ring::Stage;
use crate::product::tile::shares::{self, SHARES};
use crate::product::warp_product::{self, Products, Refill, Strips, Sums};
use crate::{Epilogue, Shape};
use core::array;
use cuda_std::mma;
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str = "as warp_fragments, f64, by the wider multiplication of sm_90";

/// The rung that it continues.
pub const PARENT: Option<crate::GemmKernel> = Some(crate::GemmKernel::WarpFragments);

/// The tile for more than 64 columns: 128 of them.
const WIDE: usize = 4;

/// The tile for 41 to 48 columns if W has no room in shared memory but without those that it lacks.
const COMPACT: usize = 11;

/// The tile that a product takes, the launch, and whether W is streamed.
fn plan(shape: Shape) -> (usize, LaunchConfig, bool) {
    let found = shares::plan::<f64>(shape, WIDE);
    if found.2 && matches!(shape.cols, 41..=48) {
        let (config, is_streamed) = tile(COMPACT).plan(shape, size_of::<f64>() as u32);
        if !is_streamed {
            return (COMPACT, config, false);
        }
    }
    found
}

/// Tiles of columns along x, blocks that take tiles of rows in turn along y.
pub fn launch(shape: Shape) -> LaunchConfig {
    plan(shape).1
}

/// The handle of the kernel for the shape's tile.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle(shape: Shape) -> Kernel<crate::Arguments<f64>> {
    match plan(shape) {
        (0, _, _) => sm90_fragments::<0, false>(),
        (1, _, _) => sm90_fragments::<1, false>(),
        (2, _, false) => sm90_fragments::<2, false>(),
        (2, _, true) => sm90_fragments::<2, true>(),
        (3, _, _) => sm90_fragments::<3, false>(),
        (5, _, _) => sm90_fragments::<5, true>(),
        (COMPACT, _, _) => sm90_fragments::<COMPACT, false>(),
        (_, _, false) => sm90_fragments::<4, false>(),
        (_, _, true) => sm90_fragments::<4, true>(),
    }
}

/// W as the kernel reads it.
#[cfg(not(target_arch = "nvptx64"))]
pub fn pack(w: &[f64], shape: Shape) -> Vec<f64> {
    shares::pack(w, shape, plan(shape).0)
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a warp for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`pack`] makes it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is that of [`launch`]; the
/// device has compute capability 9.0.
#[kernel(
    name = "gemm_double_fragments",
    target = sm_90,
    CHOICE = [0, 1, 2, 3, 4, 11], STREAMED = [false];
    CHOICE = [2, 4], STREAMED = [true]
)]
pub unsafe fn sm90_fragments<const CHOICE: usize, const STREAMED: bool>(
    x: Dense<f64>,
    w: Dense<f64>,
    y: DenseMut<f64>,
    epilogue: Epilogue<f64>,
) {
    // SAFETY: the kernel's contract.
    unsafe { warp_product::multiply::<f64, Sm90, CHOICE, STREAMED>(&x, &w, &y, &epilogue) };
}

/// By the instruction of sm_90.
struct Sm90;

/// The tile of that number.
const fn tile(choice: usize) -> Tile {
    Tile {
        line: if SHARES[choice].compact { 128 } else { 256 },
        ..SHARES[choice].tile(size_of::<f64>())
    }
}

impl Products<f64> for Sm90 {
    #[inline(always)]
    unsafe fn start(_: &Dense<f64>, _: u64) -> Self {
        Self
    }

    #[inline(always)]
    fn tile<const CHOICE: usize>() -> Tile {
        const { tile(CHOICE) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk<const CHOICE: usize>(
        stage: Stage,
        sums: &mut Sums<f64>,
        refill: Refill<'_>,
    ) {
        // SAFETY: the caller's contract.
        unsafe { warp_product::add_strips::<f64, Self, CHOICE>(stage, sums, refill) };
    }
}

impl Strips<f64> for Sm90 {
    type Rows = [f64; 4];
    type Weights = [f64; 2];

    // Loads of f64, not of words: from words the compiler copies each strip of W to other registers before it is multiplied, and the
    // next copy waits for the multiplication.
    #[inline(always)]
    #[track_caller]
    unsafe fn rows(low: Shared<u32>, high: Shared<u32>, _: bool) -> [f64; 4] {
        // SAFETY: the caller's contract.
        let (low, high) = unsafe { (low.cast::<f64>().load2(0), high.cast::<f64>().load2(0)) };
        [low[0], high[0], low[1], high[1]]
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn weights(strip: Shared<u32>) -> [f64; 2] {
        // SAFETY: the caller's contract.
        unsafe { strip.cast::<f64>().load2(0) }
    }

    #[inline(always)]
    #[track_caller]
    fn add<const COUNT: usize>(
        x: [f64; 4],
        w: [[f64; 2]; COUNT],
        sums: [[f64; 4]; COUNT],
    ) -> [[f64; 4]; COUNT] {
        array::from_fn(|n| mma::m16n8k8(x, w[n], sums[n]))
    }
}
