//! One warp a nonzero, a lane a feature, sums by atomic addition.
//!
//! Changes from `thread_per_nonzero`: the 32 lanes of a warp take 32 neighbouring features of one nonzero, where they
//! took 32 nonzeros. A load from X and an addition to Y are then one coalesced access of 128 bytes (f32) each, where they
//! were 32 scattered ones.
//!
//! More than 32 features are more warps: tiles of 32 features are the slow axis of the grid. The report of people who
//! tuned SpMM for graphs that has this step kept the 32 threads and gave each more features instead, 8 at 256. That reads a
//! nonzero once and not once for each tile; tiles let all nonzeros read one narrow slice of X before the next, which the
//! cache likes better.
//!
//! What it costs: 32 times the threads, all of which load the same row, column and value (one access for a warp, yet
//! an instruction for each) for one multiplication; with fewer than 32 features lanes do nothing. The atomics stay. The
//! report measured 121.5 ms after 281.6 (576,289 rows, 42 million nonzeros, 32 features), but 19.0 after 5.0 on a small and
//! dense graph (4,267 rows, 2.1 million nonzeros): a gain is not one everywhere.
//!
//! Measured on an NVIDIA H200, f32, 32 features: 2.6 to 3.8 times as fast as `thread_per_nonzero`, on every graph tried.

use crate::{ItemKind, Items, MAX_GRID_Y, Shape};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// What it does, in one line.
pub const SUMMARY: &str = "one warp a nonzero, a lane a feature, added to Y by atomics";

/// It wants nonzeros.
pub const ITEMS: ItemKind = ItemKind::Nonzeros;

/// Nonzeros, and so warps, in a block.
const NONZEROS: u32 = 4;

/// Features that a warp computes: one a lane.
const TILE: u32 = WARP_SIZE;

/// A warp for each nonzero and tile of features; nonzeros along x, tiles along y.
pub fn launch<T: Real>(shape: Shape) -> LaunchConfig {
    let tiles = shape.features.div_ceil(TILE).min(MAX_GRID_Y);
    LaunchConfig::new(
        (shape.items.div_ceil(NONZEROS), tiles),
        NONZEROS * WARP_SIZE,
    )
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: Shape) -> Kernel<crate::Arguments<T>> {
    warp_per_nonzero::<T>()
}

/// `Y[row, j] += A[row, col] * X[col, j]`, a warp for a nonzero and 32 features.
///
/// A nonzero costs a warp its row and its column (4 B each), its value, 32 neighbouring elements of X and as many atomic
/// additions to neighbouring elements of Y.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, apart from each
/// other. `items` holds the row of each nonzero of A. Blocks have 128 threads.
#[kernel(name = "spmm_warp_per_nonzero", T = [f32, f64])]
pub unsafe fn warp_per_nonzero<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    let k = thread::block_idx_x() * NONZEROS + thread::thread_idx_x() / WARP_SIZE;
    if k >= items.count {
        return;
    }
    let k = k as usize;
    let lane = warp::lane_id() as usize;
    let features = x.cols as usize;
    // SAFETY: `k` is a nonzero, its row is one of Y, its column a row of X. Y is only added to, by atomics.
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
