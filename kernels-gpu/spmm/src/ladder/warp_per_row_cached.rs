//! One warp a row, a lane a feature, the row's nonzeros cached in shared memory.
//!
//! After Huang, Dai, Wang and Yang, "GE-SpMM: General-purpose Sparse Matrix-Matrix Multiplication on GPUs for Graph Neural
//! Networks" (SC 2020): coalesced row caching. Changes from `column_major` and the rungs before:
//!
//! - The nonzeros of a row are one warp's again, so that a lane keeps the sum of its feature in a register. No atomics,
//!   no zeros before, each element of Y is written once, and the result is the same in every run.
//! - The 32 lanes load the next 32 columns and values of A at once, coalesced, into shared memory. Then each lane reads
//!   all of them from there, the same one in all lanes at the same time, which is a broadcast. Read from A directly, each would
//!   be an access of global memory for one word.
//!
//! What it costs: 32 times the size of a column and a value in shared memory for each warp, and two `sync_warp` for each
//! 32 nonzeros. Rows differ in length: a row of a million nonzeros keeps one warp busy when all others have ended, and a row
//! of three pays for a tile of 32. A report of people who tuned SpMM for graphs measured 10.4 ms after the 37.5 of
//! `column_major` (576,289 rows, 42 million nonzeros, 32 features), but 17.1 after 15.7 on a graph with a few enormous rows.
//!
//! Measured on an NVIDIA H200, f32, 32 features: 2.1 to 5.7 times as fast as `warp_per_nonzero` on mildly skewed graphs; on graphs
//! with very long rows between 0.6 times and 4.8 times.

use crate::{ItemKind, Items, MAX_GRID_Y, Shape};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// What it does, in one line.
pub const SUMMARY: &str = "one warp a row, a lane a feature, nonzeros cached in shared memory";

/// It wants rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// Rows, and so warps, in a block.
const ROWS: u32 = 4;

/// Features that a warp computes: one a lane.
const TILE: u32 = WARP_SIZE;

/// Nonzeros that a warp caches at a time: one a lane.
const CACHED: u32 = WARP_SIZE;

/// A warp for each row and tile of features; rows along x, tiles along y.
pub fn launch<T: Real>(shape: Shape) -> LaunchConfig {
    let tiles = shape.features.div_ceil(TILE).min(MAX_GRID_Y);
    LaunchConfig::new((shape.rows.div_ceil(ROWS), tiles), ROWS * WARP_SIZE)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: Shape) -> Kernel<crate::Arguments<T>> {
    warp_per_row_cached::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a warp for a row and 32 features.
///
/// A nonzero costs a warp its column (4 B) and its value, written to shared memory once and read from there once by all
/// lanes together, and 32 neighbouring elements of X.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1,
/// apart from each other. Blocks have 128 threads.
#[kernel(name = "spmm_warp_per_row_cached", T = [f32, f64])]
pub unsafe fn warp_per_row_cached<T: Real>(
    a: Csr<T>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<T>,
) {
    let warp_in_block = thread::thread_idx_x() / WARP_SIZE;
    // A part for each warp: warps never wait for each other.
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
    // SAFETY: `row` is a row of A and Y, the columns of A are rows of X, and `column` is a column of X. The warp is alone in
    // its part of the cache, and its lanes are ordered by `sync_warp`.
    unsafe {
        let row_of_y = items.row_of_y(row);
        let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        let mut tile = thread::block_idx_y();
        while tile < x.cols.div_ceil(TILE) {
            let feature = tile as usize * TILE as usize + lane as usize;
            // Lanes past the last feature work along on it, as the cache wants all lanes, and write nothing.
            let column = x.data.offset(feature.min(features - 1));
            let mut sum = T::ZERO;
            let mut first = start;
            while first < end {
                let count = (end - first).min(CACHED);
                // The tile before has been read by all lanes.
                warp::sync_warp(FULL_MASK);
                if lane < count {
                    let k = (first + lane) as usize;
                    cols.store(lane as usize, a.col_idx.load(k));
                    values.store(lane as usize, a.values.load(k));
                }
                warp::sync_warp(FULL_MASK);
                for k in 0..count as usize {
                    let col = cols.load(k) as usize;
                    sum = values.load(k).mul_add(column.load(col * features), sum);
                }
                first += count;
            }
            if feature < features {
                y.data.store(row_of_y * features + feature, sum);
            }
            tile += thread::grid_dim_y();
        }
    }
}
