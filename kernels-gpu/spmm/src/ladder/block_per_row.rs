//! One block of two warps a row, which cache 64 nonzeros at a time and share them out.
//!
//! Changes from `warp_per_row_cached`:
//!
//! - Two warps work on the same 32 features of one row: each takes every other nonzero, and at the end the second's sums
//!   go to the first through shared memory. A long row takes half the time, and rows never wait for others of their block.
//! - The cache is the block's, 64 nonzeros, one loaded by each thread: half as many rounds of load and wait.
//!
//! What it costs: barriers are those of the block, `sync_threads` for `sync_warp`, and there are two more to add
//! the sums. A row of one nonzero starts two warps for it. A report of people who tuned SpMM for graphs took these steps one
//! by one: a block a row, 10.29 ms after 10.4, and 64 nonzeros a load, 10.17 (576,289 rows, 42 million nonzeros, 32
//! features); how the threads of a block shared the work it does not say, and every other nonzero is the choice made here,
//! as it leaves neither warp without work in a row of a few.
//!
//! Measured on an NVIDIA H200, f32, 32 features: up to 1.8 times as fast as `warp_per_row_cached` where very long rows decide, 0.6
//! times where rows are short.

use crate::{ItemKind, Items, MAX_GRID_Y, Shape};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// What it does, in one line.
pub const SUMMARY: &str =
    "one block of two warps a row, a lane a feature, 64 nonzeros cached at a time";

/// It wants rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// Threads in a block, and nonzeros that it caches at a time.
const BLOCK: u32 = 2 * WARP_SIZE;

/// Features that a block computes: one a lane.
const TILE: u32 = WARP_SIZE;

/// The largest extent of a grid along x.
const MAX_GRID_X: u32 = i32::MAX as u32;

/// A block for each row and tile of features; rows along x, tiles along y.
pub fn launch<T: Real>(shape: Shape) -> LaunchConfig {
    let tiles = shape.features.div_ceil(TILE).min(MAX_GRID_Y);
    LaunchConfig::new((shape.rows.min(MAX_GRID_X), tiles), BLOCK)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: Shape) -> Kernel<crate::Arguments<T>> {
    block_per_row::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a block for a row and 32 features, a warp for every other nonzero.
///
/// A nonzero costs a block its column (4 B) and its value, written to shared memory once and read from there once by all
/// lanes of one warp together, and 32 neighbouring elements of X.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1,
/// apart from each other. Blocks have 64 threads.
#[kernel(name = "spmm_block_per_row", T = [f32, f64])]
pub unsafe fn block_per_row<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    let cols = shared_array!(u32; BLOCK as usize);
    let values = shared_array!(T; BLOCK as usize);
    let second_sums = shared_array!(T; WARP_SIZE as usize);
    let thread = thread::thread_idx_x();
    let (warp, lane) = ((thread / WARP_SIZE) as usize, (thread % WARP_SIZE) as usize);
    let features = x.cols as usize;
    let mut row = thread::block_idx_x() as usize;
    // SAFETY: `row` is a row of A and Y, the columns of A are rows of X, and `column` is a column of X. What the threads
    // share is ordered by barriers, which all of them reach: loops depend on the block alone.
    unsafe {
        while row < a.rows as usize {
            let row_of_y = items.row_of_y(row);
            let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
            let mut tile = thread::block_idx_y();
            while tile < x.cols.div_ceil(TILE) {
                let feature = tile as usize * TILE as usize + lane;
                // Lanes past the last feature work along on it, as the cache wants all threads, and write nothing.
                let column = x.data.offset(feature.min(features - 1));
                let mut sum = T::ZERO;
                let mut first = start;
                while first < end {
                    let count = (end - first).min(BLOCK);
                    if thread < count {
                        let k = (first + thread) as usize;
                        cols.store(thread as usize, a.col_idx.load(k));
                        values.store(thread as usize, a.values.load(k));
                    }
                    thread::sync_threads();
                    for k in (warp..count as usize).step_by(2) {
                        let col = cols.load(k) as usize;
                        sum = values.load(k).mul_add(column.load(col * features), sum);
                    }
                    // The cache is free for the next nonzeros.
                    thread::sync_threads();
                    first += count;
                }
                if warp == 1 {
                    second_sums.store(lane, sum);
                }
                thread::sync_threads();
                if warp == 0 && feature < features {
                    let sum = sum + second_sums.load(lane);
                    y.data.store(row_of_y * features + feature, sum);
                }
                // The sums are free for the next tile: a row without nonzeros has no other barrier before it.
                thread::sync_threads();
                tile += thread::grid_dim_y();
            }
            row += thread::grid_dim_x() as usize;
        }
    }
}
