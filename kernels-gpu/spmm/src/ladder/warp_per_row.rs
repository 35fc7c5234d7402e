//! Row split: one warp computes a row of Y, a lane for each feature; shuffles broadcast the nonzeros.
//!
//! A block has four warps and four rows. A warp computes a tile of 32 features, one in each lane. Each lane loads one
//! of the next 32 columns and values of the row. Shuffles hand them to all lanes, eight nonzeros at a time. Tiles are
//! the slow axis of the grid, so that all rows read one slice of X, which then stays in the L2 cache, before the next
//! slice begins.
//!
//! A nonzero costs a warp its column (4 bytes), its value, and 32 neighbouring elements of X.
//!
//! New against `warp_per_row_cached`: registers and shuffles replace shared memory and `sync_warp`. All eight loads of
//! X in a batch are issued before the first addition, so that many loads are in flight. That helps long rows most.
//!
//! Where it loses: one warp works on a row of a million nonzeros when all others have ended. A row of three nonzeros
//! uses three of 32 lanes when it loads columns and values.
//!
//! Source: row split, section 4.1 of Yang, Buluç and Owens, "Design Principles for Sparse Matrix Multiplication on the
//! GPU" (Euro-Par 2018).

use crate::{ItemKind, Items, LaunchShape, MAX_GRID_Y};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str =
    "row split: one warp a row, a lane a feature, nonzeros broadcast by shuffles";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::WarpPerRowCached);

/// Its units of work: rows.
pub const ITEMS: ItemKind = ItemKind::Rows;

/// Rows of a block, one for each warp.
const ROWS: u32 = 4;

/// Features that a warp computes, one for each lane.
const TILE: u32 = WARP_SIZE;

/// Nonzeros whose loads of X are in flight together.
const UNROLL: u32 = 8;

/// A warp for each row and tile of features; rows along x, tiles along y.
pub fn launch<T: Real>(shape: LaunchShape) -> LaunchConfig {
    let tiles = shape.features.div_ceil(TILE).min(MAX_GRID_Y);
    LaunchConfig::new((shape.rows.div_ceil(ROWS), tiles), ROWS * WARP_SIZE)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: LaunchShape) -> Kernel<crate::PlainArguments<T>> {
    warp_per_row::<T>()
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a warp for a row and 32 features.
///
/// A nonzero costs a warp its column (4 bytes), its value, and 32 neighbouring elements of X.
///
/// # Safety
///
/// The pointers of A, X and Y hold as many elements as their shapes say; no column of A is `a.cols` or more. X is
/// `a.cols` x n, Y is `a.rows` x n, n is at least 1, and Y overlaps no input. Blocks have 128 threads.
#[kernel(name = "spmm_warp_per_row", T = [f32])]
pub unsafe fn warp_per_row<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    let row = thread::block_idx_x() * ROWS + thread::thread_idx_x() / WARP_SIZE;
    if row >= a.rows {
        return;
    }
    let row = row as usize;
    let lane = warp::lane_id();
    let features = x.cols as usize;
    // SAFETY: `row < a.rows`, checked above, so all lanes of the warp are here. A column of A is below `a.cols`, the
    // number of rows of X. A feature past the last is replaced by the last.
    unsafe {
        let row_of_y = items.row_of_y(row);
        let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        let mut tile = thread::block_idx_y();
        while tile < x.cols.div_ceil(TILE) {
            let feature = (tile * TILE + lane) as usize;
            // A lane past the last feature computes the last one, since the shuffles need all lanes. It writes nothing.
            let column = x.data.offset(feature.min(features - 1));
            let sum = row_times_column(&a, start, end, column, features);
            if feature < features {
                y.data.store(row_of_y * features + feature, sum);
            }
            tile += thread::grid_dim_y();
        }
    }
}

/// The sum of A's nonzeros `start..end`, each times an element of a column of X: the one in the row that the nonzero
/// names. The column of X starts at `column`.
///
/// # Safety
///
/// That of the kernel. All lanes of the warp call it, with the same `start` and `end`; `column` is a column of X.
#[inline(always)]
pub(crate) unsafe fn row_times_column<T: Real>(
    a: &Csr<T>,
    start: u32,
    end: u32,
    column: Global<T>,
    features: usize,
) -> T {
    let lane = warp::lane_id();
    let mut sum = T::ZERO;
    let mut first = start;
    while first < end {
        let count = (end - first).min(WARP_SIZE);
        // SAFETY: only lanes below `count` load a nonzero, so that `first + lane < end`; only their columns are used,
        // and those are rows of X. All lanes of the warp run the same iterations, so all of them reach the shuffles.
        unsafe {
            let (mut my_col, mut my_value) = (0, T::ZERO);
            if lane < count {
                my_col = a.col_idx.load((first + lane) as usize);
                my_value = a.values.load((first + lane) as usize);
            }
            let value = |k: u32| warp::shfl_idx(FULL_MASK, my_value, k, WARP_SIZE);
            let element = |k: u32| {
                let col = warp::shfl_idx(FULL_MASK, my_col, k, WARP_SIZE);
                column.load(col as usize * features)
            };
            let mut k = 0;
            while k + UNROLL <= count {
                // The compiler unrolls `array::from_fn`, but not a loop over shuffles.
                let elements: [T; UNROLL as usize] = array::from_fn(|i| element(k + i as u32));
                let values: [T; UNROLL as usize] = array::from_fn(|i| value(k + i as u32));
                for i in 0..UNROLL as usize {
                    sum = values[i].mul_add(elements[i], sum);
                }
                k += UNROLL;
            }
            while k < count {
                sum = value(k).mul_add(element(k), sum);
                k += 1;
            }
        }
        // No overflow: `first` is at most `end`.
        first += count;
    }
    sum
}
