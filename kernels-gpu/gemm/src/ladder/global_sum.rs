//! The naive kernel: one thread a row, each sum in global memory.
//!
//! The definition, written down. Three accesses to memory for a multiplication: an element of X, one of W, and the sum, read
//! and written. That the sum is always the same element helps nothing: every addition waits for the store before it. The
//! report measured 177 ms (f64, 281,903 x 128 by 128 x 16).
//!
//! On an H200, the same product: 3.40 ms in f32, 13.5 ms in f64; a copy of the bytes of X, W and Y takes 0.044 and 0.082 ms.

use crate::{BLOCK, Epilogue, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape, thread_per_row};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct GlobalSum;

impl Rung for GlobalSum {
    const SUMMARY: &'static str = "naive: one thread a row, the sums in global memory";
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for GlobalSum {
    fn plan(shape: Shape) -> Plan<T> {
        Plan {
            config: thread_per_row(shape, shape.cols),
            kernel: global_sum::<T>(),
        }
    }
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a thread for a row.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n, apart from each other. Blocks have 128 threads.
#[kernel(name = "gemm_global_sum", T = [f32, f64])]
pub unsafe fn global_sum<T: RealElement>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    let row = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    if row >= x.rows as usize {
        return;
    }
    let (depth, cols) = (x.cols as usize, w.cols as usize);
    for j in 0..cols {
        let place = row * cols + j;
        // SAFETY: `row` is a row of X and Y, `j` a column of W and Y.
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
