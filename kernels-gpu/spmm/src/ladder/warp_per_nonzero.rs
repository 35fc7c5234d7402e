//! One warp multiplies one nonzero, a lane for each feature, and adds to Y by atomic additions.
//!
//! A block has four warps and four nonzeros. A warp computes a tile of 32 features, one in each lane. Tiles are the
//! slow axis of the grid. The run fills Y with zeros first.
//!
//! A nonzero costs a warp its row, its column (4 bytes each) and its value, 32 neighbouring elements of X, and atomic
//! additions to 32 neighbouring elements of Y.
//!
//! New against `thread_per_nonzero`: the 32 lanes take 32 features of one nonzero instead of 32 nonzeros. A load from X
//! and an addition to Y are one coalesced access of 128 bytes (f32) each, instead of 32 scattered ones.
//!
//! Where it loses: it needs 32 times as many threads. Each of them loads a row, a column and a value for one
//! multiplication. With fewer than 32 features some lanes idle. The atomic additions remain.
//!
//! Source: the second step of a course report on SpMM. There a thread loops over several features when there are more
//! than 32. Here each tile has its own warps, so that all nonzeros read one narrow slice of X before the next slice
//! begins. A narrow slice is more likely to stay in the L2 cache.

use crate::{ItemKind, Items, LaunchShape, MAX_GRID_Y};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str = "one warp a nonzero, a lane a feature, added to Y by atomics";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::ThreadPerNonzero);

/// Its units of work: nonzeros.
pub const ITEMS: ItemKind = ItemKind::Nonzeros;

/// Nonzeros of a block, one for each warp.
const NONZEROS: u32 = 4;

/// Features that a warp computes, one for each lane.
const TILE: u32 = WARP_SIZE;

/// A warp for each nonzero and tile of features; nonzeros along x, tiles along y.
pub fn launch<T: Real>(shape: LaunchShape) -> LaunchConfig {
    let tiles = shape.features.div_ceil(TILE).min(MAX_GRID_Y);
    LaunchConfig::new(
        (shape.items.div_ceil(NONZEROS), tiles),
        NONZEROS * WARP_SIZE,
    )
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: LaunchShape) -> Kernel<crate::PlainArguments<T>> {
    warp_per_nonzero::<T>()
}

/// `Y[row, j] += A[row, col] * X[col, j]`, a warp for a nonzero and 32 features.
///
/// A nonzero costs a warp its row and its column (4 bytes each), its value, 32 neighbouring elements of X and as many
/// atomic additions to neighbouring elements of Y.
///
/// # Safety
///
/// The pointers of A, X and Y hold as many elements as their shapes say; no column of A is `a.cols` or more. X is
/// `a.cols` x n, Y is `a.rows` x n, and Y overlaps no input. `items` holds the row of each nonzero of A. Blocks have
/// 128 threads.
#[kernel(name = "spmm_warp_per_nonzero", T = [f32])]
pub unsafe fn warp_per_nonzero<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    let k = thread::block_idx_x() * NONZEROS + thread::thread_idx_x() / WARP_SIZE;
    if k >= items.count {
        return;
    }
    let k = k as usize;
    let lane = warp::lane_id() as usize;
    let features = x.cols as usize;
    // SAFETY: `k < items.count`, checked above, so nonzero `k` exists. Its row is below `a.rows` and its column below
    // `a.cols`. Warps that share a row of Y add to it atomically.
    unsafe {
        let value = a.values.load(k);
        let from = x.data.offset(a.col_idx.load(k) as usize * features);
        let to = y.data.offset(items.row.load(k) as usize * features);
        let mut feature = thread::block_idx_y() as usize * TILE as usize + lane;
        while feature < features {
            to.reduce_add(Scope::Device, feature, value * from.load(feature));
            feature += thread::grid_dim_y() as usize * TILE as usize;
        }
    }
}
