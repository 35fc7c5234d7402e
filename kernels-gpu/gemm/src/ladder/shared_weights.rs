//! One thread computes a row of Y, and W lies in shared memory.
//!
//! A block has 128 threads and 128 rows. It first copies a slice of W, 128 rows and 16 columns, into shared memory.
//! Larger matrices take several slices. Between two slices of the same columns, the sums wait in Y.
//!
//! A multiplication costs an element of X from global memory and an element of W from shared memory. All lanes read the
//! same element of W, which is a broadcast.
//!
//! New against `register_sum`: one of two accesses moves from global to shared memory.
//!
//! Where it loses: it gains next to nothing on a GPU whose L1 cache holds W (8 or 16 KiB for 128 x 16), and f64 gets
//! slower. X is still read once for every column of Y, and that dominates.
//!
//! Source: the third step of a contest report on GCN inference, where it was a large gain.

use crate::ladder::slice::{self, TILE};
use crate::{BLOCK, BiasRelu, GemmKernel, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch, thread_per_row};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct SharedWeights;

/// Rows of W in a slice.
const HEIGHT: u32 = 128;

impl Rung for SharedWeights {
    const SUMMARY: &'static str = "one thread a row, W in shared memory";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::RegisterSum);
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for SharedWeights {
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        PlannedLaunch {
            config: thread_per_row(problem, TILE),
            kernel: shared_weights::<T>(),
        }
    }
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a thread for a row and 16 columns.
///
/// A multiplication costs an element of X from global and one of W from shared memory, the same for all lanes.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n, apart from each other. Blocks have 128 threads.
#[kernel(name = "gemm_shared_weights", T = [f32])]
pub unsafe fn shared_weights<T: RealElement>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    let weights = shared_array!(T; (HEIGHT * TILE) as usize);
    let row = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    let (depth, cols) = (x.cols as usize, w.cols as usize);
    let mut column = thread::block_idx_y() * TILE;
    while column < w.cols {
        let tile = (w.cols - column).min(TILE) as usize;
        let mut first = 0;
        // At least once, so that Y is written where X has no columns.
        loop {
            let last = x.cols - first <= HEIGHT;
            // SAFETY: all threads reach the barriers, because the loops depend on the block alone. `row < x.rows` is
            // checked, and Y has as many rows; `column < w.cols`. The slice has `HEIGHT` rows.
            unsafe {
                slice::load(&w, first, HEIGHT, column, weights);
                thread::sync_threads();
                if row < x.rows as usize {
                    let count = (x.cols - first).min(HEIGHT) as usize;
                    let x = x.data.offset(row * depth + first as usize);
                    for j in 0..tile {
                        let column = column as usize + j;
                        let place = row * cols + column;
                        let mut sum = if first == 0 {
                            T::ZERO
                        } else {
                            y.data.load(place)
                        };
                        for k in 0..count {
                            sum = x.load(k).mul_add(weights.load(k * TILE as usize + j), sum);
                        }
                        if last {
                            sum = epilogue.apply(sum, column);
                        }
                        y.data.store(place, sum);
                    }
                }
                thread::sync_threads();
            }
            if last {
                break;
            }
            first += HEIGHT;
        }
        column += thread::grid_dim_y() * TILE;
    }
}
