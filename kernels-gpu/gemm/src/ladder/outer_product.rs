//! One thread computes 16 columns of a row of Y by outer products, and reads each element of X once.
//!
//! A block has 128 threads and 128 rows. A thread loads an element of X, multiplies it with 16 neighbouring elements of
//! a row of W in shared memory, and adds the products to 16 sums in registers.
//!
//! An element of X costs four (f32) or eight (f64) 16-byte loads from shared memory, the same for all lanes, and 16
//! multiplications.
//!
//! New against `row_in_registers`: the loops change places. A thread needs one register for X and 16 for sums, instead
//! of 64 and one. The 16 additions are independent. W is read along its rows, by 16-byte loads.
//!
//! Where it loses: little is gained, and f32 gets slower. A load takes one element from each of 32 sectors. Before the
//! next element of a sector is wanted, the other warps have pushed it out of the cache, so memory delivers it again.
//! `tiled_depth` ends that.
//!
//! Source: the fifth step of a contest report on GCN inference, where the gain was small, too.

use crate::ladder::slice::{self, TILE};
use crate::{BLOCK, BiasRelu, GemmKernel, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch, thread_per_row};
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct OuterProduct;

/// Rows of W in a slice.
const HEIGHT: u32 = 128;

impl Rung for OuterProduct {
    const SUMMARY: &'static str =
        "one thread a row, each element of X read once, 16 sums in registers";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::RowInRegisters);
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for OuterProduct {
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        PlannedLaunch {
            config: thread_per_row(problem, TILE),
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
#[kernel(name = "gemm_outer_product", T = [f32])]
pub unsafe fn outer_product<T: RealElement>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    let weights = shared_array!(T; (HEIGHT * TILE) as usize);
    let row = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    let mut column = thread::block_idx_y() * TILE;
    while column < w.cols {
        let mut sums = [[T::ZERO; 4]; 4];
        let mut first = 0;
        while first < x.cols {
            // SAFETY: all threads reach the barriers, because the loops depend on the block alone. `row < x.rows` is
            // checked, `first + k < x.cols`, and the slice has `HEIGHT` rows.
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
            // SAFETY: `row < x.rows`, and Y has as many rows; this thread alone has this row and these columns.
            unsafe { store(&y, row, column, sums, &epilogue) };
        }
        column += thread::grid_dim_y() * TILE;
    }
}

/// Adds the products of an element of X with a row of the slice.
///
/// # Safety
///
/// `weights` points to a row of the slice, 16 elements, which no thread writes meanwhile.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
pub(crate) unsafe fn add_product<T: Real>(element: T, weights: Shared<T>, sums: &mut [[T; 4]; 4]) {
    for part in 0..4 {
        // SAFETY: `4 * part + 3 < 16`, and a row of the slice has 16 elements.
        let weights = unsafe { weights.load4(4 * part) };
        for k in 0..4 {
            sums[part][k] = element.mul_add(weights[k], sums[part][k]);
        }
    }
}

/// Writes the sums of a row to Y from `column` on, and leaves out those past the last column.
///
/// # Safety
///
/// `row` is a row of Y, and no other thread writes these columns of it.
#[inline(always)]
pub(crate) unsafe fn store<T: RealElement>(
    y: &DenseMut<T>,
    row: usize,
    column: u32,
    sums: [[T; 4]; 4],
    epilogue: &BiasRelu<T>,
) {
    let cols = y.cols as usize;
    unroll!(part in 0..4 {
        unroll!(k in 0..4 {
            let column = column as usize + 4 * part + k;
            if column < cols {
                // SAFETY: `column < cols`, checked here, and `row` is a row of Y by the contract.
                unsafe {
                    let element = epilogue.apply(sums[part][k], column);
                    y.data.store(row * cols + column, element);
                }
            }
        });
    });
}
