//! K in tiles of 16: 16 elements of a row of X, then their 16 outer products.
//!
//! Change from `outer_product`: a thread loads 16 neighbours of its row before it uses the first. The 16 loads are in flight
//! together, and they follow each other so closely that a line of X is still in the cache for all of them: each sector
//! comes from memory once. The report went from 10.3 ms to 1.14 ms, its best, and asks whether occupancy or throughput had won:
//! neither, it is that X is read once and no longer element by element.
//!
//! On an H200, 281,903 x 128 by 128 x 16: from 0.280 ms to 0.208 in f32, from 0.299 to 0.258 in f64.

use crate::ladder::outer_product::{add_product, store};
use crate::ladder::slice::{self, TILE};
use crate::{BLOCK, Epilogue, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape, thread_per_row};
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
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for TiledDepth {
    fn plan(shape: Shape) -> Plan<T> {
        Plan {
            config: thread_per_row(shape, TILE),
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
#[kernel(name = "gemm_tiled_depth", T = [f32, f64])]
pub unsafe fn tiled_depth<T: RealElement>(
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
            // SAFETY: a row of Y.
            unsafe { store(&y, row, column, sums, &epilogue) };
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
unsafe fn elements<T: Real>(x: &Dense<T>, row: usize, first: u32) -> [T; DEPTH as usize] {
    let place = row * x.cols as usize + first as usize;
    let mut elements = [T::ZERO; DEPTH as usize];
    unroll!(k in 0..16 {
        if (k as u32) < x.cols - first {
            // SAFETY: a column of X.
            elements[k] = unsafe { x.data.load(place + k) };
        }
    });
    elements
}

/// Adds the products of 16 elements of X with as many rows of the slice.
///
/// # Safety
///
/// Rows of the slice, which is not written meanwhile.
#[inline(always)]
pub(crate) unsafe fn add_products<T: Real>(
    elements: [T; DEPTH as usize],
    weights: Shared<T>,
    sums: &mut [[T; 4]; 4],
) {
    unroll!(k in 0..16 {
        // SAFETY: a row of the slice.
        unsafe { add_product(elements[k], weights.offset(k * TILE as usize), sums) };
    });
}
