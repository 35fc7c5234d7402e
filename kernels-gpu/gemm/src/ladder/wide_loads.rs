//! One thread computes 16 columns of a row of Y and loads its tile of X by 16-byte loads.
//!
//! Blocks, threads and sums are those of `tiled_depth`. A row whose length is no multiple of four elements is not
//! aligned for 16-byte loads, and is loaded element by element.
//!
//! An element of X costs four (f32) or eight (f64) 16-byte loads from shared memory, the same for all lanes, and 16
//! multiplications.
//!
//! New against `tiled_depth`: 16 elements of X take four (f32) or eight (f64) load instructions instead of 16. Memory
//! traffic is the same; there are fewer instructions, and more bytes are in flight.
//!
//! Where it loses: a row of X for each thread keeps a tile in registers, so registers limit the loads in flight. Each
//! element of W in shared memory serves one row.
//!
//! Source: the last step of a contest report on GCN inference, where `double4` and `double2` loads were slower. A
//! likely reason is a cast of an element's address: it moves the array to local memory. Here values go to registers,
//! and the assembler reports no local memory.

use crate::ladder::outer_product::store;
use crate::ladder::slice::{self, TILE};
use crate::ladder::tiled_depth::add_products;
use crate::{BLOCK, BiasRelu, GemmKernel, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch, thread_per_row};
use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The kernel in the table.
pub struct WideLoads;

/// Rows of W in a slice.
const HEIGHT: u32 = 128;

/// Elements of X that are loaded together.
const DEPTH: u32 = 16;

impl Rung for WideLoads {
    const SUMMARY: &'static str = "as tiled_depth, X by 16-byte loads";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::TiledDepth);
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for WideLoads {
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        PlannedLaunch {
            config: thread_per_row(problem, TILE),
            kernel: wide_loads::<T>(),
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
/// `x` is m x k, `w` k x n, `y` m x n, apart from each other, X aligned to 16 bytes. Blocks have 128 threads.
#[kernel(name = "gemm_wide_loads", T = [f32])]
pub unsafe fn wide_loads<T: RealElement>(
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

/// 16 elements of a row of X from column `first` on, a multiple of 16; zeros past the last column.
///
/// # Safety
///
/// `row` is a row of X, and `first` is below its number of columns.
#[inline(always)]
unsafe fn elements<T: Real>(x: &Dense<T>, row: usize, first: u32) -> [T; DEPTH as usize] {
    let place = row * x.cols as usize + first as usize;
    let whole = x.cols - first >= DEPTH;
    if whole && x.cols.is_multiple_of(4) {
        // SAFETY: all 16 columns exist (`whole`). Rows have a multiple of four elements, `first` is a multiple of 16,
        // and X is aligned to 16 bytes, so each group of four is aligned.
        let quads: [[T; 4]; 4] = array::from_fn(|i| unsafe { x.data.load4(place + 4 * i) });
        let mut elements = [T::ZERO; DEPTH as usize];
        unroll!(k in 0..16 {
            elements[k] = quads[k / 4][k % 4];
        });
        return elements;
    }
    let mut elements = [T::ZERO; DEPTH as usize];
    unroll!(k in 0..16 {
        if (k as u32) < x.cols - first {
            // SAFETY: `first + k < x.cols`, checked here, and `row` is a row of X by the contract.
            elements[k] = unsafe { x.data.load(place + k) };
        }
    });
    elements
}
