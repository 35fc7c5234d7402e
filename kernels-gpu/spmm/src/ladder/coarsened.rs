//! One warp a row, two or four features a lane, the row's nonzeros cached in shared memory.
//!
//! After Huang, Dai, Wang and Yang, "GE-SpMM: General-purpose Sparse Matrix-Matrix Multiplication on GPUs for Graph Neural
//! Networks" (SC 2020): coarse-grained warp merging. Changes from `warp_per_row_cached`: a warp does the
//! work of two or four, tiles of 64 or 128 features where they were of 32.
//!
//! - A nonzero is loaded, cached and read from the cache once for twice or four times as many features.
//! - A lane's loads of X for one nonzero do not depend on each other: two or four are in flight together. They are 32
//!   features apart, so that each is one coalesced access of the warp.
//!
//! What it costs: half or a quarter of the warps, each of them longer, which a graph of few rows or with one very long row
//! feels; more registers; and with a number of features that is no multiple of the tile, lanes that compute nothing.
//! So lanes have four features from 128 on, where a tile of 128 is full, and two below. A report of people who tuned SpMM
//! for graphs gave its threads two features at 256.
//!
//! Measured on an NVIDIA H200, f32: with 128 features 1.4 to 1.8 times as fast as `warp_per_row_cached` on mildly skewed graphs of
//! short rows, 0.6 to 0.8 times elsewhere; with 32 features slower everywhere, as half the lanes have none.

use crate::{ItemKind, Items, MAX_GRID_Y, Shape};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// What it does, in one line.
pub const SUMMARY: &str =
    "one warp a row, two or four features a lane, nonzeros cached in shared memory";

/// It wants rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// Rows, and so warps, in a block.
const ROWS: u32 = 4;

/// Nonzeros that a warp caches at a time: one a lane.
const CACHED: u32 = WARP_SIZE;

/// Features of a lane in a product of that shape.
fn features_per_lane(shape: Shape) -> u32 {
    if shape.features < 128 { 2 } else { 4 }
}

/// A warp for each row and tile of features; rows along x, tiles along y.
pub fn launch<T: Real>(shape: Shape) -> LaunchConfig {
    let tile = features_per_lane(shape) * WARP_SIZE;
    let tiles = shape.features.div_ceil(tile).min(MAX_GRID_Y);
    LaunchConfig::new((shape.rows.div_ceil(ROWS), tiles), ROWS * WARP_SIZE)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(shape: Shape) -> Kernel<crate::Arguments<T>> {
    match features_per_lane(shape) {
        2 => coarsened::<T, 2>(),
        _ => coarsened::<T, 4>(),
    }
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a warp for a row and 32 times `FEATURES` features: lane l has features
/// l, l + 32, .. of the tile.
///
/// A nonzero costs a warp its column (4 B) and its value, written to shared memory once and read from there once by all
/// lanes together, and 32 times `FEATURES` neighbouring elements of X.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1,
/// apart from each other. Blocks have 128 threads.
#[kernel(name = "spmm_coarsened", T = [f32, f64], FEATURES = [2, 4])]
pub unsafe fn coarsened<T: Real, const FEATURES: usize>(
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
    let tile_width = FEATURES * WARP_SIZE as usize;
    // SAFETY: `row` is a row of A and Y, the columns of A are rows of X, and `columns` are columns of X. The warp is alone in
    // its part of the cache, and its lanes are ordered by `sync_warp`.
    unsafe {
        let row_of_y = items.row_of_y(row);
        let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        let mut tile = thread::block_idx_y() as usize;
        while tile < features.div_ceil(tile_width) {
            let feature = |i: usize| tile * tile_width + i * WARP_SIZE as usize + lane as usize;
            // Features past the last one are computed as that one, and not written.
            let columns: [Global<T>; FEATURES] =
                array::from_fn(|i| x.data.offset(feature(i).min(features - 1)));
            let mut sums = [T::ZERO; FEATURES];
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
                    let (col, value) = (cols.load(k) as usize, values.load(k));
                    let elements = columns.map(|column| column.load(col * features));
                    sums = array::from_fn(|i| value.mul_add(elements[i], sums[i]));
                }
                first += count;
            }
            // An array, as the compiler leaves a loop over stores a loop, and would keep the sums in memory for it.
            let _: [(); FEATURES] = array::from_fn(|i| {
                if feature(i) < features {
                    y.data.store(row_of_y * features + feature(i), sums[i]);
                }
            });
            tile += thread::grid_dim_y() as usize;
        }
    }
}
