//! XW on tensor cores: each warp streams its rows of X through a ring of stages in shared memory.
//!
//! A warp computes tiles of 16 or 32 rows and up to 128 columns, in turn. A block's warps share W in shared memory.
//! The file `tile/ring.rs` draws the ring. An element of X is read once for each tile of columns:
//! by one asynchronous copy to shared memory, and one 16-byte load of a strip from there.
//!
//! Changes from `fragments`:
//!
//! - Loads of X in flight occupy no registers, and go on from tile to tile. So a warp has registers for 128 columns.
//! - The host packs W in the order in which lanes read it. Columns are ordered so that a lane writes 16 neighbouring
//!   bytes of a row of Y.
//!
//! f32 is rounded to tf32, so plans choose this kernel for f32 only if the options allow tf32. It refuses rows of an
//! odd number of 16-bit elements, which are not aligned to the words that `cp.async` copies. `flat_fragments` takes
//! those of up to 64 elements, `warpgroup_fragments` those of up to 1024, and `fragments` all.

#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::plan::{Candidate, Chosen, choose};
use crate::product::tile::warp_tiles::*;
use crate::product::warp_product::{self, PlainProducts};
use crate::{BiasRelu, GemmKernel, Rung, Strides, TensorCoreElement};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct WarpFragments;

impl Rung for WarpFragments {
    const SUMMARY: &'static str =
        "tensor cores, a warp streams its own rows through shared memory; f32 as tf32";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::Fragments);
    const STRIDES: Strides = Strides::Aligned;
    const ROUNDS_F32: bool = true;

    fn refusal(depth: u32, size: usize) -> Option<&'static str> {
        warp_product::refuses_odd_rows(depth, size)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: TensorCoreElement> Multiplies<T> for WarpFragments {
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        chosen(problem).plan
    }

    fn pack(w: Vec<T>, problem: GemmProblem) -> Vec<T> {
        let Chosen {
            shape: tile_shape,
            tile,
            ..
        } = chosen::<T>(problem);
        let packed = pack_strips(&w, problem.cols, tile_shape, tile);
        packed.into_iter().map(T::prepare_weight).collect()
    }
}

/// The instance for a product. There are few for f64, which newer GPUs multiply by `sm90_fragments`, and for tf32.
#[cfg(not(target_arch = "nvptx64"))]
fn chosen<T: TensorCoreElement>(problem: GemmProblem) -> Chosen<T> {
    fn of<T: TensorCoreElement, S: WarpTile>() -> Candidate<T> {
        Candidate::new::<PlainProducts, S>(warp_fragments::<T, S>)
    }
    let size = size_of::<T>();
    let is_short = u64::from(problem.depth) * size as u64 <= SHORT_ROW_BYTES;
    let resident = match (size, problem.cols) {
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
    let all = match size {
        2 => vec![
            of::<T, Columns16>(),
            of::<T, Columns16ShortRows>(),
            of::<T, Columns48SmallChunks>(),
            of::<T, Columns64>(),
            of::<T, Columns128>(),
            of::<T, Columns128Streamed>(),
        ],
        4 => vec![
            of::<T, Columns48>(),
            of::<T, Columns48Streamed>(),
            of::<T, Columns128>(),
        ],
        _ => vec![of::<T, Columns16>(), of::<T, Columns48Streamed>()],
    };
    choose(problem, resident, streamed, all)
}

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`; a warp computes tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` is k x n, packed by [`WarpFragments`], and `y` is m x n. They do not overlap and are aligned to 16
/// bytes. The launch is the plan of [`WarpFragments`].
#[kernel(
    name = "gemm_warp_fragments",
    T = [f16, bf16],
    S = [Columns16, Columns16ShortRows, Columns48SmallChunks, Columns64, Columns128, Columns128Streamed];
    T = [f32], S = [Columns48, Columns48Streamed, Columns128];
    T = [f64], S = [Columns16, Columns48Streamed]
)]
pub unsafe fn warp_fragments<T: TensorCoreElement, S: WarpTile>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    // SAFETY: operands, packing and launch are as the contract says, and all threads call it.
    unsafe { warp_product::multiply::<T, PlainProducts, S>(&x, &w, &y, &epilogue) };
}
