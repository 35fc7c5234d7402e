//! The tile of X by 16-byte loads.
//!
//! Change from `tiled_depth`: 16 elements of X come by four (f32) or eight (f64) loads in the place of 16. The report tried
//! `double4` and `double2` and found them slower, 3.0 ms and 3.2 ms after 1.14 ms, and left open why. The traffic cannot be
//! the cause: the sectors are the same. What explains a factor of three is the array: an array of a thread is in
//! registers only as long as all its indices are constants and nobody takes its address, and a cast of `&x[k]` to
//! `double4*` takes it. The array then lies in local memory, and each element is written there and read back. Here the
//! words go from the load to their registers by value, and the assembler reports no local memory.
//!
//! Rows that do not start at a multiple of 16 bytes are loaded element by element.
//!
//! On an H200, 281,903 x 128 by 128 x 16: from 0.208 ms to 0.114 in f32, from 0.258 to 0.203 in f64: a gain here.

use crate::ladder::outer_product::store;
use crate::ladder::slice::{self, TILE};
use crate::ladder::tiled_depth::add_products;
use crate::{BLOCK, Epilogue, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{Multiplies, Plan, Shape, thread_per_row};
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
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for WideLoads {
    fn plan(shape: Shape) -> Plan<T> {
        Plan {
            config: thread_per_row(shape, TILE),
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
#[kernel(name = "gemm_wide_loads", T = [f32, f64])]
pub unsafe fn wide_loads<T: RealElement>(
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

/// Elements of a row of X from column `first` on, a multiple of 16; zeros past the last.
///
/// # Safety
///
/// A row of X.
#[inline(always)]
unsafe fn elements<T: Real>(x: &Dense<T>, row: usize, first: u32) -> [T; DEPTH as usize] {
    let place = row * x.cols as usize + first as usize;
    let whole = x.cols - first >= DEPTH;
    if whole && x.cols.is_multiple_of(4) {
        // SAFETY: columns of X; the row starts at a multiple of four elements.
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
            // SAFETY: a column of X.
            elements[k] = unsafe { x.data.load(place + k) };
        }
    });
    elements
}
