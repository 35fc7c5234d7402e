//! W in shared memory.
//!
//! Change from `register_sum`: a block copies W into shared memory before it computes, so that of the two accesses of a
//! multiplication one is on the chip. For k = 128 and n = 16 all of W fits; what is larger is taken in slices of 128 rows and
//! 16 columns, and sums wait in Y for the next slice. The report went from 59 ms to 15.3 ms.
//!
//! On an H200, 281,903 x 128 by 128 x 16: from 2.50 ms to 2.38 in f32, and from 3.00 to 4.89 in f64: no gain, a loss in f64. W, 8 or 16 KiB,
//! was in the L1 cache before too, and X is still read once for each column.

use crate::ladder::slice::{self, TILE};
use crate::{BLOCK, Epilogue, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape, thread_per_row};
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct SharedWeights;

/// Rows of W in a slice.
const HEIGHT: u32 = 128;

impl Rung for SharedWeights {
    const SUMMARY: &'static str = "one thread a row, W in shared memory";
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for SharedWeights {
    fn plan(shape: Shape) -> Plan<T> {
        Plan {
            config: thread_per_row(shape, TILE),
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
#[kernel(name = "gemm_shared_weights", T = [f32, f64])]
pub unsafe fn shared_weights<T: RealElement>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    let weights = shared_array!(T; (HEIGHT * TILE) as usize);
    let row = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    let (depth, cols) = (x.cols as usize, w.cols as usize);
    let mut column = thread::block_idx_y() * TILE;
    while column < w.cols {
        let tile = (w.cols - column).min(TILE) as usize;
        let mut first = 0;
        // Once at least, so that Y is written where k is 0.
        loop {
            let last = x.cols - first <= HEIGHT;
            // SAFETY: all threads reach the barriers; rows of X and Y, elements of the slice.
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
