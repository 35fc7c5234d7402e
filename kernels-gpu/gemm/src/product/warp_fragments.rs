//! Tensor cores: each warp streams its own rows of X through shared memory and takes fragments from there.
//!
//! Changes from `fragments`: what is on its way from global memory takes no registers and does not end with a tile (`ring`), so
//! that a warp may compute up to 128 columns at once; X is read once; W comes packed, in the order in which lanes read it; its columns
//! are ordered so that a lane has 16 neighbouring bytes of a row of Y to write.
//!
//! On an H200, 281,903 x 128 by 128 x 16 in f16: 0.0235 ms, 1.02 of the floor, after 0.029 for `fragments`; cuBLAS takes 0.0253. 100 to 47: 0.0328 ms,
//! 0.76, cuBLAS 0.077; 602 to 41: 0.1455 after 0.160, 0.63, cuBLAS 0.308. By 128 x 128, not measured since copies and stores take fewer instructions:
//! 0.092 ms in tf32 after 0.243, 0.051 in f16 after 0.153. Where a lane found the place of each of its copies anew, 128 to 16 took 0.026 and 100
//! to 47 0.055.
//!
//! Rows that are aligned to 4 or 8 bytes alone were copied in such pieces, four or two times the work. Those of 512 bytes and more now come in
//! the pieces of 16, aligned as X is, in which a chunk lies, one more a row than without (`Tile::apart`), and fragments
//! are loaded by words: 602 to 41 of f16 0.125 ms after 0.149, f32 in parts, in tiles of 32 rows, 0.342 after 0.454. Rows of an odd number of elements go
//! through registers, and are slower than by `fragments`: 601 to 41 0.67 ms, and 0.26 there; 129 to 16 0.168 and 0.056.
//!
//! Tiles of 32 rows gained nothing: 0.115 ms in f16 by 128 x 128 in tiles of 48 columns. 16-bit elements and 17 to 48 columns want chunks of 64 bytes
//! and three blocks: 0.039 ms for 100 to 47, at the time, after 0.043 with chunks of 128 and two; f64 does not (0.119 after 0.111). Rows of 64
//! bytes want chunks of 64: with those of 128, half of them empty, 16 x 16 in tf32 took 0.0136 ms and not 0.0099.

use crate::product::tile::shares;
use crate::product::warp_product::{self, Direct};
use crate::{Epilogue, Fragment, GemmElement, Shape};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str =
    "tensor cores, a warp streams its own rows through shared memory; f32 as tf32";

/// The rung that it continues.
pub const PARENT: Option<crate::GemmKernel> = Some(crate::GemmKernel::Fragments);

/// The tile for more than 64 columns: 128 of them.
const WIDE: usize = 4;

/// Tiles of columns along x, blocks that take tiles of rows in turn along y.
pub fn launch<T: GemmElement>(shape: Shape) -> LaunchConfig {
    shares::plan::<T>(shape, WIDE).1
}

/// The handle of the kernel for the shape's tile.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Fragment>(shape: Shape) -> Kernel<crate::Arguments<T>> {
    match shares::plan::<T>(shape, WIDE) {
        (0, _, _) => warp_fragments::<T, 0, false>(),
        (1, _, _) => warp_fragments::<T, 1, false>(),
        (2, _, false) => warp_fragments::<T, 2, false>(),
        (2, _, true) => warp_fragments::<T, 2, true>(),
        (3, _, _) => warp_fragments::<T, 3, false>(),
        (6, _, _) => warp_fragments::<T, 6, false>(),
        (7, _, _) => warp_fragments::<T, 7, false>(),
        (8, _, _) => warp_fragments::<T, 8, false>(),
        (5, _, _) => warp_fragments::<T, 5, true>(),
        (_, _, false) => warp_fragments::<T, 4, false>(),
        (_, _, true) => warp_fragments::<T, 4, true>(),
    }
}

/// W as the kernel reads it.
#[cfg(not(target_arch = "nvptx64"))]
pub fn pack<T: Fragment>(w: &[T], shape: Shape) -> Vec<T> {
    let packed = shares::pack(w, shape, shares::plan::<T>(shape, WIDE).0);
    packed.into_iter().map(T::prepare_weight).collect()
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a warp for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`pack`] makes it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is that of [`launch`].
#[kernel(
    name = "gemm_warp_fragments",
    T = [f32, f64, f16, bf16], CHOICE = [0, 1, 2, 3, 4], STREAMED = [false];
    T = [f16, bf16], CHOICE = [6], STREAMED = [false];
    T = [f16, bf16], CHOICE = [7], STREAMED = [false];
    T = [f32], CHOICE = [8], STREAMED = [false];
    T = [f64], CHOICE = [2], STREAMED = [true];
    T = [f32, f64, f16, bf16], CHOICE = [4, 5], STREAMED = [true]
)]
pub unsafe fn warp_fragments<T: Fragment, const CHOICE: usize, const STREAMED: bool>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    // SAFETY: the kernel's contract.
    unsafe { warp_product::multiply::<T, Direct, CHOICE, STREAMED>(&x, &w, &y, &epilogue) };
}
