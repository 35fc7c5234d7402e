//! The product of `shallow` in f64: a thread reads its rows of X from memory and writes its elements of Y there.
//!
//! Tiles in f64 take twice the shared memory, so fewer blocks are resident. With tiles of X and Y in shared memory,
//! products in f64 with up to 8 columns of X were 0.50 to 1.08 times as fast as with this file (docs/notes/gemm.md).

use super::BLOCK;
use crate::BiasRelu;
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, MAX_GRID_Y};
use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut, Operand, SumOf};

/// Maximum number of columns of a tile.
const MOST_COLUMNS: u32 = 256;

/// Rows of a thread.
const ROWS: usize = 4;

/// Maximum number of columns of a thread.
const COLUMNS: usize = 4;

/// Maximum number of blocks for each multiprocessor. They take tiles of rows in turn.
#[cfg(not(target_arch = "nvptx64"))]
const BLOCKS_PER_MULTIPROCESSOR: u32 = 8;

/// The columns of a thread in a tile of so many, and the threads of a row. With fewer columns than threads of a warp, a
/// thread has one, so that a warp writes neighbouring elements.
#[inline(always)]
const fn columns_of_thread(columns: u32) -> (u32, u32) {
    let each = match columns {
        0..32 => 1,
        32..64 => 2,
        _ => COLUMNS as u32,
    };
    (each, columns.div_ceil(each))
}

/// The columns of every tile but the last one, which may have fewer.
#[inline(always)]
const fn tile(cols: u32) -> u32 {
    let tiles = cols.div_ceil(MOST_COLUMNS);
    // Without columns there is no tile; the condition spares the panic path of a division by zero.
    cols.div_ceil(if tiles == 0 { 1 } else { tiles })
}

/// The grid has tiles of columns along x, and along y blocks that share the rows.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn launch<T: Operand>(problem: GemmProblem) -> LaunchConfig {
    let tile = tile(problem.cols);
    let (_, across) = columns_of_thread(tile);
    let rows = BLOCK / across.max(1) * ROWS as u32;
    let most = (problem.multiprocessors.max(1)).saturating_mul(BLOCKS_PER_MULTIPROCESSOR);
    let blocks = (problem.rows.div_ceil(rows)).min(most).clamp(1, MAX_GRID_Y);
    let config = LaunchConfig::new((problem.cols.div_ceil(tile), blocks), BLOCK);
    config.shared_bytes(problem.depth * tile * size_of::<T::Sum>() as u32)
}

/// The product.
///
/// # Safety
///
/// The same as of [`shallow`](super::shallow), with the launch of this file.
#[inline(always)]
pub(super) unsafe fn multiply<T: Operand>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    let weights = shared::dynamic_shared_mem::<SumOf<T>>();
    let tile = tile(w.cols);
    let first_column = thread::block_idx_x() * tile;
    let columns = (w.cols - first_column.min(w.cols)).min(tile);
    let thread = thread::thread_idx_x();
    // SAFETY: the columns are columns of W and Y, and `k` is below the depth. The launch has shared memory for the
    // tile; the barrier comes before it is read.
    unsafe {
        let mut column = thread;
        while column < columns {
            let mut k = 0;
            while k < x.cols {
                let weight = w
                    .data
                    .load(k as usize * w.cols as usize + (first_column + column) as usize);
                weights.store((k * columns + column) as usize, weight.widen());
                k += 1;
            }
            column += BLOCK;
        }
    }
    thread::sync_threads();
    // There is a column; `max` spares the panic path of a division by zero.
    let (each, across) = columns_of_thread(columns);
    let across = across.max(1);
    let rows_of_block = BLOCK / across;
    let (row, column) = (thread / across, thread % across);
    if row >= rows_of_block {
        return;
    }
    let of_thread: [u32; COLUMNS] = array::from_fn(|j| column + j as u32 * across);
    let step = u64::from(rows_of_block) * ROWS as u64;
    let mut first = u64::from(thread::block_idx_y()) * step + u64::from(row);
    while first < u64::from(x.rows) {
        let rows: [u64; ROWS] = array::from_fn(|i| first + i as u64 * u64::from(rows_of_block));
        // Rows past the last one are computed as the last one, and not written.
        let of_x: [Global<T>; ROWS] = array::from_fn(|i| {
            x.data
                .offset(rows[i].min(u64::from(x.rows) - 1) as usize * x.stride as usize)
        });
        let mut sums = [[T::Sum::ZERO; COLUMNS]; ROWS];
        let mut k = 0;
        while k < x.cols {
            // SAFETY: the rows are rows of X, and `k` a column. The tile of W has `columns` columns.
            unsafe {
                let elements: [T::Sum; ROWS] = array::from_fn(|i| of_x[i].load(k as usize).widen());
                unroll!(j in 0..4 {
                    if (j as u32) < each {
                        let column = of_thread[j].min(columns - 1);
                        let weight = weights.load((k * columns + column) as usize);
                        unroll!(i in 0..4 {
                            sums[i][j] = elements[i].mul_add(weight, sums[i][j]);
                        });
                    }
                });
            }
            k += 1;
        }
        unroll!(i in 0..4 {
            if rows[i] < u64::from(x.rows) {
                let of_y = y.data.offset(rows[i] as usize * y.stride as usize);
                unroll!(j in 0..4 {
                    if (j as u32) < each && of_thread[j] < columns {
                        let column = (first_column + of_thread[j]) as usize;
                        // SAFETY: row and column are of Y, and no other thread has both.
                        unsafe { of_y.store(column, epilogue.apply(sums[i][j], column)) };
                    }
                });
            }
        });
        first += step * u64::from(thread::grid_dim_y());
    }
}
