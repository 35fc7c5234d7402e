//! One block of two warps computes a row of Y; it caches 64 nonzeros at a time and shares them out.
//!
//! Both warps compute the same tile of 32 features, one in each lane. Each thread loads one of the next 64 columns and
//! values into shared memory. Warp 0 takes the even nonzeros, warp 1 the odd ones. At the end warp 1 passes its sums to
//! warp 0 through shared memory.
//!
//! A nonzero costs a block its column (4 bytes) and its value, written to shared memory once and read back once, and 32
//! neighbouring elements of X.
//!
//! New against `warp_per_row_cached`: two warps share a row, and a round of load and wait brings 64 nonzeros instead of
//! 32. A long row takes half the time. A row never waits for other rows of its block.
//!
//! Where it loses: barriers hold the whole block (`sync_threads` instead of `sync_warp`), and two more add the sums. A
//! row of one nonzero starts two warps, so matrices of short rows get slower.
//!
//! Source: two steps of a course report on SpMM, a block for each row and 64 nonzeros for each load. How its threads
//! share the nonzeros is not said there. Every other nonzero, as here, gives both warps work even in a short row.

use crate::{ItemKind, Items, LaunchShape, MAX_GRID_Y};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str =
    "one block of two warps a row, a lane a feature, 64 nonzeros cached at a time";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::WarpPerRowCached);

/// Its units of work: rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// Threads of a block, and the nonzeros that it caches at a time.
const BLOCK: u32 = 2 * WARP_SIZE;

/// Features that a block computes, one for each lane.
const TILE: u32 = WARP_SIZE;

/// The largest extent of a grid along x.
const MAX_GRID_X: u32 = i32::MAX as u32;

/// A block for each row and tile of features; rows along x, tiles along y.
pub fn launch<T: Real>(shape: LaunchShape) -> LaunchConfig {
    let tiles = shape.features.div_ceil(TILE).min(MAX_GRID_Y);
    LaunchConfig::new((shape.rows.min(MAX_GRID_X), tiles), BLOCK)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: LaunchShape) -> Kernel<crate::PlainArguments<T>> {
    block_per_row::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a block for a row and 32 features, a warp for every other nonzero.
///
/// A nonzero costs a block its column (4 bytes) and its value, written to shared memory once and broadcast from there
/// once, and 32 neighbouring elements of X.
///
/// # Safety
///
/// The pointers of A, X and Y hold as many elements as their shapes say; no column of A is `a.cols` or more. X is
/// `a.cols` x n, Y is `a.rows` x n, n is at least 1, and Y overlaps no input. Blocks have 64 threads.
#[kernel(name = "spmm_block_per_row", T = [f32])]
pub unsafe fn block_per_row<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    let cols = shared_array!(u32; BLOCK as usize);
    let values = shared_array!(T; BLOCK as usize);
    let second_sums = shared_array!(T; WARP_SIZE as usize);
    let thread = thread::thread_idx_x();
    let (warp, lane) = ((thread / WARP_SIZE) as usize, (thread % WARP_SIZE) as usize);
    let features = x.cols as usize;
    let mut row = thread::block_idx_x() as usize;
    // SAFETY: `row < a.rows` holds in the loop. A column of A is below `a.cols`, the number of rows of X. A feature
    // past the last is replaced by the last. Barriers separate writes to shared memory from reads; all threads reach
    // them, because the loops around them depend on the block alone.
    unsafe {
        while row < a.rows as usize {
            let row_of_y = items.row_of_y(row);
            let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
            let mut tile = thread::block_idx_y();
            while tile < x.cols.div_ceil(TILE) {
                let feature = tile as usize * TILE as usize + lane;
                // A thread past the last feature computes the last one, since filling the cache needs all threads. It
                // writes nothing.
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
                    // All threads have read the nonzeros; the cache is free for the next ones.
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
                // The sums have been read. A row without nonzeros has no other barrier before the next tile writes
                // them.
                thread::sync_threads();
                tile += thread::grid_dim_y();
            }
            row += thread::grid_dim_x() as usize;
        }
    }
}
