//! One thread computes 16 columns of a row of Y by outer products of 16 elements of X that it loads together.
//!
//! A block has 128 threads and 128 rows. A thread loads 16 neighbouring elements of its row of X before it uses the
//! first of them. Then it adds their 16 outer products with rows of W to 16 sums in registers.
//!
//! An element of X costs four (f32) or eight (f64) 16-byte loads from shared memory, the same for all lanes, and 16
//! multiplications.
//!
//! New against `outer_product`: k advances in tiles of 16. The 16 loads are in flight together. They follow each other
//! so closely that the cache still holds the sector for all of them, and each sector comes from memory once.
//!
//! Where it loses: 16 loads of one element each still cost 16 instructions, and 16-byte loads would cost four.
//!
//! Source: the sixth and best step of a contest report on GCN inference. The report asks whether occupancy or
//! throughput made the difference. Neither did: X is read once, sector by sector.

use crate::ladder::outer_product::{add_product, store};
use crate::ladder::slice::{self, TILE};
use crate::{BLOCK, BiasRelu, GemmKernel, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch, thread_per_row};
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct TiledDepth;

/// Rows of W in a slice.
const HEIGHT: u32 = 128;

/// Elements of X that are loaded together.
const DEPTH: u32 = 16;

impl Rung for TiledDepth {
    const SUMMARY: &'static str = "outer products of 16 elements of X that are loaded together";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::OuterProduct);
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for TiledDepth {
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        PlannedLaunch {
            config: thread_per_row(problem, TILE),
            kernel: tiled_depth::<T>(),
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
#[kernel(name = "gemm_tiled_depth", T = [f32])]
pub unsafe fn tiled_depth<T: RealElement>(
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
                    let mut k = 0;
                    while k < (x.cols - first).min(HEIGHT) {
                        let elements = elements(&x, row, first + k);
                        add_products(elements, weights.offset((k * TILE) as usize), &mut sums);
                        k += DEPTH;
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

/// 16 elements of a row of X from column `first` on; zeros past the last column.
///
/// # Safety
///
/// `row` is a row of X, and `first` is below its number of columns.
#[inline(always)]
unsafe fn elements<T: Real>(x: &Dense<T>, row: usize, first: u32) -> [T; DEPTH as usize] {
    let place = row * x.cols as usize + first as usize;
    let mut elements = [T::ZERO; DEPTH as usize];
    unroll!(k in 0..16 {
        if (k as u32) < x.cols - first {
            // SAFETY: `first + k < x.cols`, checked here, and `row` is a row of X by the contract.
            elements[k] = unsafe { x.data.load(place + k) };
        }
    });
    elements
}

/// Adds the products of 16 elements of X with 16 rows of the slice.
///
/// # Safety
///
/// `weights` points to 16 rows of the slice, which no thread writes meanwhile.
#[inline(always)]
pub(crate) unsafe fn add_products<T: Real>(
    elements: [T; DEPTH as usize],
    weights: Shared<T>,
    sums: &mut [[T; 4]; 4],
) {
    unroll!(k in 0..16 {
        // SAFETY: `weights` points to 16 rows of the slice, and `k < 16`.
        unsafe { add_product(elements[k], weights.offset(k * TILE as usize), sums) };
    });
}
