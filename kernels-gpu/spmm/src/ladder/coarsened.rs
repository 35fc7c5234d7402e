//! One warp computes a row of Y, two or four features in each lane; the nonzeros are cached in shared memory.
//!
//! A block has four warps and four rows. A warp computes a tile of 64 features, or 128 where X has at least 128. Lane l
//! has the features l, l + 32, and so on, so that each of its loads is one coalesced access of the warp.
//!
//! A nonzero costs a warp its column (4 bytes) and its value, written to shared memory once and read back once, and 64
//! or 128 neighbouring elements of X.
//!
//! New against `warp_per_row_cached`: a warp does the work of two or four.
//!
//! - A nonzero is loaded, cached and read back once for two or four times as many features.
//! - A lane has two or four independent loads of X for a nonzero, and all of them are in flight together.
//!
//! Where it loses: there are half or a quarter as many warps, and each runs longer. A matrix of few rows, or with one
//! very long row, keeps fewer multiprocessors busy. A lane needs more registers. Lanes past the last feature compute
//! nothing, so that with 32 features half of the lanes idle.
//!
//! Source: coarse-grained warp merging of GE-SpMM (Huang, Dai, Wang and Yang, SC 2020).

use crate::{ItemKind, Items, LaunchShape, MAX_GRID_Y};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str =
    "one warp a row, two or four features a lane, nonzeros cached in shared memory";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::WarpPerRowCached);

/// Its units of work: rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// Rows of a block, one for each warp.
const ROWS: u32 = 4;

/// Nonzeros that a warp caches at a time, one for each lane.
const CACHED: u32 = WARP_SIZE;

/// Features of a lane.
const FEATURES: usize = 2;

/// A warp for each row and tile of features; rows along x, tiles along y.
pub fn launch<T: Real>(shape: LaunchShape) -> LaunchConfig {
    let tile = FEATURES as u32 * WARP_SIZE;
    let tiles = shape.features.div_ceil(tile).min(MAX_GRID_Y);
    LaunchConfig::new((shape.rows.div_ceil(ROWS), tiles), ROWS * WARP_SIZE)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: LaunchShape) -> Kernel<crate::PlainArguments<T>> {
    coarsened::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a warp for a row and 32 times `FEATURES` features: lane l has features
/// l, l + 32, .. of the tile.
///
/// A nonzero costs a warp its column (4 bytes) and its value, written to shared memory once and broadcast from there
/// once, and 32 times `FEATURES` neighbouring elements of X.
///
/// # Safety
///
/// The pointers of A, X and Y hold as many elements as their shapes say; no column of A is `a.cols` or more. X is
/// `a.cols` x n, Y is `a.rows` x n, n is at least 1, and Y overlaps no input. Blocks have 128 threads.
#[kernel(name = "spmm_coarsened", T = [f32])]
pub unsafe fn coarsened<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    let warp_in_block = thread::thread_idx_x() / WARP_SIZE;
    // Each warp has its own part, so that warps never wait for each other.
    let part = (warp_in_block * CACHED) as usize;
    let cols = shared_array!(u32; (ROWS * CACHED) as usize).offset(part);
    let values = shared_array!(T; (ROWS * CACHED) as usize).offset(part);
    let row = thread::block_idx_x() * ROWS + warp_in_block;
    if row >= a.rows {
        return;
    }
    let row = row as usize;
    let lane = warp::lane_id();
    let features = x.cols as usize;
    let tile_width = FEATURES * WARP_SIZE as usize;
    // SAFETY: `row < a.rows`, checked above. A column of A is below `a.cols`, the number of rows of X. A feature past
    // the last is replaced by the last. Only this warp uses its part of the cache, and `sync_warp` separates the lanes'
    // writes from their reads.
    unsafe {
        let row_of_y = items.row_of_y(row);
        let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        let mut tile = thread::block_idx_y() as usize;
        while tile < features.div_ceil(tile_width) {
            let feature = |i: usize| tile * tile_width + i * WARP_SIZE as usize + lane as usize;
            // A feature past the last is computed as the last, and is not written.
            let columns: [Global<T>; FEATURES] =
                array::from_fn(|i| x.data.offset(feature(i).min(features - 1)));
            let mut sums = [T::ZERO; FEATURES];
            let mut first = start;
            while first < end {
                let count = (end - first).min(CACHED);
                // All lanes have read the nonzeros before.
                warp::sync_warp(FULL_MASK);
                if lane < count {
                    let k = (first + lane) as usize;
                    cols.store(lane as usize, a.col_idx.load(k));
                    values.store(lane as usize, a.values.load(k));
                }
                warp::sync_warp(FULL_MASK);
                for k in 0..count as usize {
                    let (col, value) = (cols.load(k) as usize, values.load(k));
                    let elements = columns.map(|column| column.load(col * features));
                    sums = array::from_fn(|i| value.mul_add(elements[i], sums[i]));
                }
                first += count;
            }
            // `from_fn` is unrolled; a loop over the stores is not, and would keep the sums in local memory.
            let _: [(); FEATURES] = array::from_fn(|i| {
                if feature(i) < features {
                    y.data.store(row_of_y * features + feature(i), sums[i]);
                }
            });
            tile += thread::grid_dim_y() as usize;
        }
    }
}
