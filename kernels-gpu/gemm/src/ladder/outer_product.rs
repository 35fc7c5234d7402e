//! Outer products: each element of X is read once, and goes into 16 sums in registers.
//!
//! Change from `row_in_registers`: the loops change places. A thread takes an element of X and adds its product with a row of
//! W to 16 sums, so that it needs one register for X and 16 for sums, in the place of 64 and one, and 16 independent
//! additions can run at once. W is read along its rows: 16 neighbours, four 16-byte loads in f32. The report
//! went from 11.1 ms to 10.3 ms only.
//!
//! Why so little: the lanes of a warp read 32 different rows of X, and each load takes from its 32-byte sectors one element a
//! lane. The rest of the sector is wanted in the next steps; but by then the other warps, with a line of 128 bytes for
//! each lane, have been through the cache, and it is read again, up to four times in f64. `tiled_depth` ends that.
//!
//! On an H200, 281,903 x 128 by 128 x 16: from 0.255 ms to 0.280 in f32, no gain; from 0.335 to 0.299 in f64.

use crate::ladder::slice::{self, TILE};
use crate::{BLOCK, Epilogue, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape, thread_per_row};
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct OuterProduct;

/// Rows of W in a slice.
const HEIGHT: u32 = 128;

impl Rung for OuterProduct {
    const SUMMARY: &'static str = "one thread a row, each element of X read once, 16 sums in registers";
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for OuterProduct {
    fn plan(shape: Shape) -> Plan<T> {
        Plan {
            config: thread_per_row(shape, TILE),
            kernel: outer_product::<T>(),
        }
    }
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a thread for a row and 16 columns.
///
/// An element of X costs four (f32) or eight (f64) 16-byte loads from shared memory, the same for all lanes, and 16
/// multiplications.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n, apart from each other. Blocks have 128 threads.
#[kernel(name = "gemm_outer_product", T = [f32, f64])]
pub unsafe fn outer_product<T: RealElement>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    let weights = shared_array!(T; (HEIGHT * TILE) as usize);
    let row = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    let mut column = thread::block_idx_y() * TILE;
    while column < w.cols {
        let mut sums = [[T::ZERO; 4]; 4];
        let mut first = 0;
        while first < x.cols {
            // SAFETY: all threads reach the barriers; rows of X, elements of the slice.
            unsafe {
                slice::load(&w, first, HEIGHT, column, weights);
                thread::sync_threads();
                if row < x.rows as usize {
                    let place = row * x.cols as usize + first as usize;
                    for k in 0..(x.cols - first).min(HEIGHT) as usize {
                        let weights = weights.offset(k * TILE as usize);
                        add_product(x.data.load(place + k), weights, &mut sums);
                    }
                }
                thread::sync_threads();
            }
            first += HEIGHT;
        }
        if row < x.rows as usize {
            // SAFETY: a row of Y.
            unsafe { store(&y, row, column, sums, &epilogue) };
        }
        column += thread::grid_dim_y() * TILE;
    }
}

/// Adds the products of an element of X with a row of the slice.
///
/// # Safety
///
/// A row of the slice, which is not written meanwhile.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
pub(crate) unsafe fn add_product<T: Real>(element: T, weights: Shared<T>, sums: &mut [[T; 4]; 4]) {
    for part in 0..4 {
        // SAFETY: four of the row's 16 columns.
        let weights = unsafe { weights.load4(4 * part) };
        for k in 0..4 {
            sums[part][k] = element.mul_add(weights[k], sums[part][k]);
        }
    }
}

/// Writes the sums of a row from `column` on, as many as Y has columns.
///
/// # Safety
///
/// A row of Y, which is this thread's.
#[inline(always)]
pub(crate) unsafe fn store<T: RealElement>(
    y: &DenseMut<T>,
    row: usize,
    column: u32,
    sums: [[T; 4]; 4],
    epilogue: &Epilogue<T>,
) {
    let cols = y.cols as usize;
    unroll!(part in 0..4 {
        unroll!(k in 0..4 {
            let column = column as usize + 4 * part + k;
            if column < cols {
                // SAFETY: a row and a column of Y.
                unsafe {
                    let element = epilogue.apply(sums[part][k], column);
                    y.data.store(row * cols + column, element);
                }
            }
        });
    });
}
