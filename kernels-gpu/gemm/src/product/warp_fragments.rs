//! Tensor cores: each warp streams its own rows of X through shared memory and takes fragments from there.
//!
//! Changes from `fragments`: what is in flight from global memory takes no registers and does not end with a tile
//! (`tile::ring`). So a warp computes up to 128 columns at once, and X is read once. W comes packed, in
//! the order in which lanes read it. Its columns are ordered so that a lane has 16 neighbouring bytes of a row of Y to write.
//!
//! f32 is rounded to tf32. A row with an odd number of 16-bit elements is not aligned to the words that are copied: such rows are
//! for `fragments`.

#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::plan::{Candidate, Chosen, choose};
use crate::product::tile::warp_tiles::*;
use crate::product::warp_product::{self, Direct};
use crate::{Epilogue, Fragment, GemmKernel, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct WarpFragments;

impl Rung for WarpFragments {
    const SUMMARY: &'static str =
        "tensor cores, a warp streams its own rows through shared memory; f32 as tf32";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::Fragments);
    const ROUNDS_F32: bool = true;

    fn refusal(depth: u32, size: usize) -> Option<&'static str> {
        warp_product::refuses_odd_rows(depth, size)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: Fragment> Multiplies<T> for WarpFragments {
    fn plan(shape: Shape) -> Plan<T> {
        chosen(shape).plan
    }

    fn pack(w: Vec<T>, shape: Shape) -> Vec<T> {
        let Chosen {
            shape: tile_shape,
            tile,
            ..
        } = chosen::<T>(shape);
        let packed = pack_strips(&w, shape.cols, tile_shape, tile);
        packed.into_iter().map(T::prepare_weight).collect()
    }
}

/// The instance for a product. Few are of f64, which newer GPUs multiply by `sm90_fragments`, and of tf32.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen<T: Fragment>(shape: Shape) -> Chosen<T> {
    fn of<T: Fragment, S: WarpTile>() -> Candidate<T> {
        Candidate::new::<Direct, S>(warp_fragments::<T, S>)
    }
    let size = size_of::<T>();
    let is_short = u64::from(shape.depth) * size as u64 <= SHORT_ROW_BYTES;
    let resident = match (size, shape.cols) {
        (8, ..=16) => Some(of::<T, Columns16>()),
        (8, _) => None,
        (4, ..=48) => Some(of::<T, Columns48>()),
        (2, ..=16) if is_short => Some(of::<T, Columns16ShortRows>()),
        (2, ..=16) => Some(of::<T, Columns16>()),
        (2, ..=48) => Some(of::<T, Columns48SmallChunks>()),
        (2, ..=64) => Some(of::<T, Columns64>()),
        _ => Some(of::<T, Columns128>()),
    };
    let streamed = match size {
        2 => of::<T, Columns128Streamed>(),
        _ => of::<T, Columns48Streamed>(),
    };
    choose(shape, resident, streamed)
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a warp for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`WarpFragments`] packs it, `y` m x n, apart from each other and aligned to 16 bytes; the launch
/// is its plan's.
#[kernel(
    name = "gemm_warp_fragments",
    T = [f16, bf16],
    S = [Columns16, Columns16ShortRows, Columns48SmallChunks, Columns64, Columns128, Columns128Streamed];
    T = [f32], S = [Columns48, Columns48Streamed, Columns128];
    T = [f64], S = [Columns16, Columns48Streamed]
)]
pub unsafe fn warp_fragments<T: Fragment, S: WarpTile>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    // SAFETY: the kernel's contract.
    unsafe { warp_product::multiply::<T, Direct, S>(&x, &w, &y, &epilogue) };
}
