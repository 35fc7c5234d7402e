//! One thread computes a row of Y, with each sum in a register.
//!
//! A block has 128 threads and 128 rows. A thread computes the elements of its row one after the other.
//!
//! A multiplication costs an element of X and an element of W, both from global memory. All lanes read the same element
//! of W, but elements of 32 different rows of X.
//!
//! New against `global_sum`: the sum is written once, at the end. Two of four accesses are gone, and an addition no
//! longer waits for a store. That helps f64 most.
//!
//! Where it loses: X is still read once for every column of Y, and one element of each sector at a time.
//!
//! Source: the second step of a contest report on GCN inference.

use crate::{BLOCK, BiasRelu, GemmKernel, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch, thread_per_row};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct RegisterSum;

impl Rung for RegisterSum {
    const SUMMARY: &'static str = "one thread a row, the sum in a register";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::GlobalSum);
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for RegisterSum {
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        PlannedLaunch {
            config: thread_per_row(problem, problem.cols),
            kernel: register_sum::<T>(),
        }
    }
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a thread for a row.
///
/// A multiplication costs an element of X, in as many lines of memory as a warp has lanes, and one of W, the same for
/// all of them.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n, apart from each other. Blocks have 128 threads.
#[kernel(name = "gemm_register_sum", T = [f32])]
pub unsafe fn register_sum<T: RealElement>(
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
        // SAFETY: `row < x.rows`, checked above, and Y has as many rows; `j < cols`, the columns of W and Y; `k <
        // depth`.
        unsafe {
            let mut sum = T::ZERO;
            for k in 0..depth {
                let (x, w) = (x.data.load(row * depth + k), w.data.load(k * cols + j));
                sum = x.mul_add(w, sum);
            }
            y.data.store(row * cols + j, epilogue.apply(sum, j));
        }
    }
}
