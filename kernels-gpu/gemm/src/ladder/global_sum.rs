//! Naive `Y = X W`: one thread computes a row of Y, with each sum in global memory. This is the root of the ladder.
//!
//! A block has 128 threads and 128 rows. A thread computes the elements of its row one after the other.
//!
//! A multiplication costs an element of X, an element of W, and the sum, which is read and written: four accesses to
//! global memory.
//!
//! It loses in three ways:
//!
//! - Every addition waits for the store before it, because the sum is always the same element.
//! - X is read once for every column of Y.
//! - The lanes of a warp read 32 different rows of X, so that a load instruction touches 32 sectors.
//!
//! Source: the first step of a contest report on GCN inference, which computes X W in f64.

use crate::{BLOCK, BiasRelu, GemmKernel, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch, thread_per_row};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct GlobalSum;

impl Rung for GlobalSum {
    const SUMMARY: &'static str = "naive: one thread a row, the sums in global memory";
    const PARENT: Option<GemmKernel> = None;
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for GlobalSum {
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        PlannedLaunch {
            config: thread_per_row(problem, problem.cols),
            kernel: global_sum::<T>(),
        }
    }
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a thread for a row.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n, apart from each other. Blocks have 128 threads.
#[kernel(name = "gemm_global_sum", T = [f32])]
pub unsafe fn global_sum<T: RealElement>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    let row = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    if row >= x.rows as usize {
        return;
    }
    let (depth, cols) = (x.cols as usize, w.cols as usize);
    for j in 0..cols {
        let place = row * cols + j;
        // SAFETY: `row < x.rows`, checked above, and Y has as many rows; `j < cols`, the columns of W and Y; `k <
        // depth`.
        unsafe {
            y.data.store(place, T::ZERO);
            for k in 0..depth {
                let (x, w) = (x.data.load(row * depth + k), w.data.load(k * cols + j));
                y.data.store(place, x.mul_add(w, y.data.load(place)));
            }
            y.data.store(place, epilogue.apply(y.data.load(place), j));
        }
    }
}
