//! A row of X in registers: inner products.
//!
//! Change from `shared_weights`: a thread loads its row of X once, into registers, and not once for each column. What is left
//! for a multiplication is one access to shared memory. The report went from 15.3 ms to 11.1 ms.
//!
//! The report keeps 128 elements, which in f64 are 256 registers where a thread can have 255. Here it is 64 elements at a
//! time, and sums wait in Y for the next 64.
//!
//! On an H200, 281,903 x 128 by 128 x 16: from 2.38 ms to 0.255 in f32, from 4.89 to 0.335 in f64, the greatest gain of the ladder.

use crate::ladder::slice::{self, TILE};
use crate::{BLOCK, Epilogue, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape, thread_per_row};
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct RowInRegisters;

/// Elements of X in registers, as eight times eight.
const HEIGHT: u32 = 64;

impl Rung for RowInRegisters {
    const SUMMARY: &'static str = "one thread a row, the row in registers, inner products with W's columns";
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for RowInRegisters {
    fn plan(shape: Shape) -> Plan<T> {
        Plan {
            config: thread_per_row(shape, TILE),
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
#[kernel(name = "gemm_row_in_registers", T = [f32, f64])]
pub unsafe fn row_in_registers<T: RealElement>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    let weights = shared_array!(T; (HEIGHT * TILE) as usize);
    let row = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    let cols = w.cols as usize;
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

/// Elements of a row of X from column `first` on, zeros past the last.
///
/// # Safety
///
/// A row of X.
#[inline(always)]
unsafe fn elements<T: Real>(x: &Dense<T>, row: usize, first: u32) -> [[T; 8]; 8] {
    let place = row * x.cols as usize + first as usize;
    let mut elements = [[T::ZERO; 8]; 8];
    unroll!(i in 0..8 {
        unroll!(k in 0..8 {
            if ((8 * i + k) as u32) < x.cols - first {
                // SAFETY: a column of X.
                elements[i][k] = unsafe { x.data.load(place + 8 * i + k) };
            }
        });
    });
    elements
}

/// `sum` and the inner product of the elements with the column of the slice that starts at `weights`.
///
/// # Safety
///
/// A column of the slice, which is not written meanwhile.
#[inline(always)]
unsafe fn inner_product<T: Real>(elements: [[T; 8]; 8], weights: Shared<T>, sum: T) -> T {
    let mut sum = sum;
    unroll!(i in 0..8 {
        unroll!(k in 0..8 {
            // SAFETY: a row of the slice.
            let weight = unsafe { weights.load((8 * i + k) * TILE as usize) };
            sum = elements[i][k].mul_add(weight, sum);
        });
    });
    sum
}
