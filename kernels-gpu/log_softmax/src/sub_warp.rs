//! LogSoftmax of rows with up to 64 classes, a multiple of four: four lanes compute a row in registers.
//!
//! A lane loads up to four vectors of four neighbouring elements. Shuffles combine maximum and sum of the four lanes.
//! For up to 16 classes, a lane has one vector, and the kernel has code of its own without branches for the others.
//!
//! ```text
//! a row of 32 classes     vector 0  vector 1  vector 2  vector 3  vector 4  vector 5  vector 6  vector 7
//! lane                    0         1         2         3         0         1         2         3
//! ```
//!
//! An element is read once and written once.

use crate::{BLOCK, Bias, ExpLn, SoftmaxElement};
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;
use warprow_kernels_matrix::{Dense, DenseMut, unroll};

/// Maximum number of vectors for each lane.
const VECTORS: u32 = 4;

/// Elements of a vector.
pub(crate) const WIDTH: usize = 4;

/// Lanes that compute a row.
pub(crate) const LANES: u32 = 4;

/// Whether a row of `classes` classes consists of whole vectors and fits in the registers of its lanes.
pub(crate) fn fits(classes: u32) -> bool {
    classes <= LANES * WIDTH as u32 * VECTORS && classes.is_multiple_of(WIDTH as u32)
}

/// `Y[row, :] = LogSoftmax(X[row, :] + bias)`; four lanes compute a row.
///
/// # Safety
///
/// `x` and `y` are m x n, do not overlap, and are aligned to 16 bytes. n is a multiple of four from 4 to 64, and both
/// strides are multiples of four. The bias, if there is one, has n elements and is aligned to 16 bytes. The launch is
/// that of [`SoftmaxKernel::launch`](crate::SoftmaxKernel::launch).
#[kernel(name = "log_softmax_sub_warp", T = [f32, f64, f16, bf16])]
pub unsafe fn sub_warp<T: SoftmaxElement>(x: Dense<T>, y: DenseMut<T>, bias: Bias<T>) {
    // SAFETY: `log_softmax` requires what this kernel requires, and there are at most `LANES * WIDTH * N` classes:
    // checked for N = 1, and by the contract for N = `VECTORS`.
    unsafe {
        if x.cols <= LANES * WIDTH as u32 {
            log_softmax::<T, 1>(x, y, bias);
        } else {
            log_softmax::<T, { VECTORS as usize }>(x, y, bias);
        }
    }
}

/// The kernel's body for rows of up to `N` vectors of each lane.
///
/// # Safety
///
/// The kernel's contract, and there are at most `LANES * WIDTH * N` classes.
#[inline(always)]
unsafe fn log_softmax<T: SoftmaxElement, const N: usize>(
    x: Dense<T>,
    y: DenseMut<T>,
    bias: Bias<T>,
) {
    let (rows, classes) = (x.rows, x.cols);
    let thread = thread::thread_idx_x();
    let row =
        u64::from(thread::block_idx_x()) * u64::from(BLOCK / LANES) + u64::from(thread / LANES);
    // Lanes past the last row compute the last row, because the shuffles need all lanes, and write nothing.
    let row_start = row.min(u64::from(rows) - 1) as usize * x.stride as usize;
    let column = |vector: usize| (vector as u32 * LANES + thread % LANES) * WIDTH as u32;
    // All loads are issued before the first element is used.
    let mut loaded = [[T::narrow(T::Sum::NEG_INFINITY); WIDTH]; N];
    // SAFETY: the row exists, and a vector is loaded only if its first column is below `classes`, a multiple of the
    // vector's width. Strides are whole vectors, so vectors are aligned.
    unsafe {
        unroll!(vector in 0..4 {
            if const { vector < N } && column(vector) < classes {
                loaded[vector] = x.data.load_array::<WIDTH>(row_start + column(vector) as usize);
            }
        });
    }
    let mut elements = [[T::Sum::NEG_INFINITY; WIDTH]; N];
    let mut max = T::Sum::NEG_INFINITY;
    // SAFETY: the bias has an element for each class, and these are below `classes`.
    unsafe {
        unroll!(vector in 0..4 {
            if const { vector < N } && column(vector) < classes {
                elements[vector] = bias.added(loaded[vector], column(vector));
                unroll!(k in 0..4 {
                    if elements[vector][k] > max {
                        max = elements[vector][k];
                    }
                });
            }
        });
    }
    let mut distance = LANES / 2;
    while distance > 0 {
        let other = warp::shfl_xor(FULL_MASK, max, distance, LANES);
        if other > max {
            max = other;
        }
        distance /= 2;
    }
    let mut sum = T::Sum::ZERO;
    unroll!(vector in 0..4 {
        if const { vector < N } && column(vector) < classes {
            unroll!(k in 0..4 {
                elements[vector][k] = elements[vector][k] - max;
                sum += elements[vector][k].exp();
            });
        }
    });
    let mut distance = LANES / 2;
    while distance > 0 {
        sum += warp::shfl_xor(FULL_MASK, sum, distance, LANES);
        distance /= 2;
    }
    let logarithm = sum.ln();
    if row < u64::from(rows) {
        let row_start = row as usize * y.stride as usize;
        // SAFETY: `row < rows`; vectors are as above, and no other lane has the same ones.
        unsafe {
            unroll!(vector in 0..4 {
                if const { vector < N } && column(vector) < classes {
                    let result = elements[vector].map(|element| T::narrow(element - logarithm));
                    y.data.store_array(row_start + column(vector) as usize, result);
                }
            });
        }
    }
}
