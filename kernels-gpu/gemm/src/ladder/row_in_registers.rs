//! One thread computes a row of Y by inner products, and a part of its row of X lies in registers.
//!
//! A block has 128 threads and 128 rows. A thread loads 64 elements of its row of X. Then it computes their inner
//! products with 16 columns of W, whose slice lies in shared memory. Between two parts of a row, the sums wait in Y.
//!
//! A multiplication costs an element of W from shared memory, the same for all lanes.
//!
//! New against `shared_weights`: an element of X is loaded once and not once for every column. This is the largest gain
//! of the ladder.
//!
//! Where it loses: each multiplication waits for a load from shared memory and for the addition before it. 64 registers
//! for X leave room for fewer warps. The lanes of a warp still read 32 different rows of X.
//!
//! Source: the fourth step of a contest report on GCN inference. It keeps 128 elements, which in f64 need 256
//! registers; a thread can have 255. So this rung takes 64 at a time.

use crate::ladder::slice::{self, TILE};
use crate::{BLOCK, BiasRelu, GemmKernel, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch, thread_per_row};
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct RowInRegisters;

/// Elements of X in registers, as eight times eight.
const HEIGHT: u32 = 64;

impl Rung for RowInRegisters {
    const SUMMARY: &'static str =
        "one thread a row, the row in registers, inner products with W's columns";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::SharedWeights);
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for RowInRegisters {
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        PlannedLaunch {
            config: thread_per_row(problem, TILE),
            kernel: row_in_registers::<T>(),
        }
    }
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a thread for a row and 16 columns.
///
/// A multiplication costs an element of W from shared memory, the same for all lanes.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n, apart from each other. Blocks have 128 threads.
#[kernel(name = "gemm_row_in_registers", T = [f32])]
pub unsafe fn row_in_registers<T: RealElement>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    let weights = shared_array!(T; (HEIGHT * TILE) as usize);
    let row = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    let cols = w.cols as usize;
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
                    let elements = elements(&x, row, first);
                    for j in 0..tile {
                        let column = column as usize + j;
                        let place = row * cols + column;
                        let mut sum = if first == 0 {
                            T::ZERO
                        } else {
                            y.data.load(place)
                        };
                        sum = inner_product(elements, weights.offset(j), sum);
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

/// 64 elements of a row of X from column `first` on; zeros past the last column.
///
/// # Safety
///
/// `row` is a row of X, and `first` is at most its number of columns.
#[inline(always)]
unsafe fn elements<T: Real>(x: &Dense<T>, row: usize, first: u32) -> [[T; 8]; 8] {
    let place = row * x.cols as usize + first as usize;
    let mut elements = [[T::ZERO; 8]; 8];
    unroll!(i in 0..8 {
        unroll!(k in 0..8 {
            if ((8 * i + k) as u32) < x.cols - first {
                // SAFETY: the column is below `x.cols`, checked here, and `row` is a row of X by the contract.
                elements[i][k] = unsafe { x.data.load(place + 8 * i + k) };
            }
        });
    });
    elements
}

/// `sum` plus the inner product of the elements with a column of the slice, which starts at `weights`.
///
/// # Safety
///
/// `weights` points to a column of the slice, which no thread writes meanwhile.
#[inline(always)]
unsafe fn inner_product<T: Real>(elements: [[T; 8]; 8], weights: Shared<T>, sum: T) -> T {
    let mut sum = sum;
    unroll!(i in 0..8 {
        unroll!(k in 0..8 {
            // SAFETY: `8 * i + k < 64`, and a column of the slice has 64 elements, `TILE` apart.
            let weight = unsafe { weights.load((8 * i + k) * TILE as usize) };
            sum = elements[i][k].mul_add(weight, sum);
        });
    });
    sum
}
