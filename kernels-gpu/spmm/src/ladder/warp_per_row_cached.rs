//! One warp computes a row of Y, a lane for each feature; the nonzeros of the row are cached in shared memory.
//!
//! A block has four warps and four rows. A warp computes a tile of 32 features, one in each lane. It loads the next 32
//! columns and values of its row at once, one in each lane, into its own part of shared memory. Then every lane reads
//! all 32.
//!
//! A nonzero costs a warp its column (4 bytes) and its value, written to shared memory once and read back once, and 32
//! neighbouring elements of X.
//!
//! New against `warp_per_nonzero`: a warp keeps the nonzeros of a row together.
//!
//! - The sum of a feature stays in a register. There are no atomic additions, Y is written once and needs no zeros.
//! - Columns and values are loaded coalesced. All lanes read the same word of shared memory, which is a broadcast.
//! - The result has the same bits in every run.
//!
//! Where it loses: one warp works on a row of a million nonzeros when all others have ended. A row of three nonzeros
//! pays for a cache of 32. Each 32 nonzeros need two `sync_warp`.
//!
//! Source: coalesced row caching of GE-SpMM (Huang, Dai, Wang and Yang, "GE-SpMM: General-purpose Sparse Matrix-Matrix
//! Multiplication on GPUs for Graph Neural Networks", SC 2020).

use crate::{ItemKind, Items, LaunchShape, MAX_GRID_Y};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str = "one warp a row, a lane a feature, nonzeros cached in shared memory";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::WarpPerNonzero);

/// Its units of work: rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// Rows of a block, one for each warp.
const ROWS: u32 = 4;

/// Features that a warp computes, one for each lane.
const TILE: u32 = WARP_SIZE;

/// Nonzeros that a warp caches at a time, one for each lane.
const CACHED: u32 = WARP_SIZE;

/// A warp for each row and tile of features; rows along x, tiles along y.
pub fn launch<T: Real>(shape: LaunchShape) -> LaunchConfig {
    let tiles = shape.features.div_ceil(TILE).min(MAX_GRID_Y);
    LaunchConfig::new((shape.rows.div_ceil(ROWS), tiles), ROWS * WARP_SIZE)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: LaunchShape) -> Kernel<crate::PlainArguments<T>> {
    warp_per_row_cached::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a warp for a row and 32 features.
///
/// A nonzero costs a warp its column (4 bytes) and its value, written to shared memory once and broadcast from there
/// once, and 32 neighbouring elements of X.
///
/// # Safety
///
/// The pointers of A, X and Y hold as many elements as their shapes say; no column of A is `a.cols` or more. X is
/// `a.cols` x n, Y is `a.rows` x n, n is at least 1, and Y overlaps no input. Blocks have 128 threads.
#[kernel(name = "spmm_warp_per_row_cached", T = [f32])]
pub unsafe fn warp_per_row_cached<T: Real>(
    a: Csr<T>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<T>,
) {
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
    // SAFETY: `row < a.rows`, checked above. A column of A is below `a.cols`, the number of rows of X. A feature past
    // the last is replaced by the last. Only this warp uses its part of the cache, and `sync_warp` separates the lanes'
    // writes from their reads.
    unsafe {
        let row_of_y = items.row_of_y(row);
        let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        let mut tile = thread::block_idx_y();
        while tile < x.cols.div_ceil(TILE) {
            let feature = tile as usize * TILE as usize + lane as usize;
            // A lane past the last feature computes the last one, since filling the cache needs all lanes. It writes
            // nothing.
            let column = x.data.offset(feature.min(features - 1));
            let mut sum = T::ZERO;
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
