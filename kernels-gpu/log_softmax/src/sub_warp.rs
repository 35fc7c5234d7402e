//! Rows of up to 64 classes, a multiple of four: four lanes a row, the row in registers.
//!
//! A lane loads up to four vectors of four neighbouring elements; maximum and sum are combined by shuffles. X is read
//! once. A row of up to 16 classes is one vector of each lane, and has code of its own without branches for the others.

use crate::{BLOCK, Bias, Logarithm, SoftmaxElement};
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;
use warprow_kernels_matrix::unroll;

/// Vectors of a lane, at most.
const VECTORS: u32 = 4;

/// Elements of a vector.
const WIDTH: usize = 4;

/// Lanes for a row.
pub(crate) const LANES: u32 = 4;

/// Whether a row of so many classes consists of vectors and fits the registers of its lanes.
pub(crate) fn fits(classes: u32) -> bool {
    classes <= LANES * WIDTH as u32 * VECTORS && classes.is_multiple_of(WIDTH as u32)
}

/// `Y[row, :] = LogSoftmax(X[row, :] + bias)`, `LANES` lanes for a row.
///
/// # Safety
///
/// `x` and `y` have `rows` times `classes` elements, apart from each other; there are at least one class and at most
/// 64, a multiple of four; the bias has one for each if there is one; the launch is that of [`launch`](crate::launch).
#[kernel(name = "log_softmax_sub_warp", T = [f32, f64, f16, bf16])]
pub unsafe fn sub_warp<T: SoftmaxElement>(
    rows: u32,
    classes: u32,
    x: Global<T>,
    y: GlobalMut<T>,
    bias: Bias<T>,
) {
    // SAFETY: the kernel's contract.
    unsafe {
        if classes <= LANES * WIDTH as u32 {
            log_softmax::<T, 1>(rows, classes, x, y, bias);
        } else {
            log_softmax::<T, { VECTORS as usize }>(rows, classes, x, y, bias);
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
    rows: u32,
    classes: u32,
    x: Global<T>,
    y: GlobalMut<T>,
    bias: Bias<T>,
) {
    let thread = thread::thread_idx_x();
    let row =
        u64::from(thread::block_idx_x()) * u64::from(BLOCK / LANES) + u64::from(thread / LANES);
    // Sub-warps past the last row work along on it, as the shuffles want all lanes, and write nothing.
    let place = row.min(u64::from(rows) - 1) as usize * classes as usize;
    let column = |vector: usize| (vector as u32 * LANES + thread % LANES) * WIDTH as u32;
    // All loads are issued before the first element is used.
    let mut loaded = [[T::narrow(T::Sum::NEG_INFINITY); WIDTH]; N];
    // SAFETY: vectors of the row.
    unsafe {
        unroll!(vector in 0..4 {
            if const { vector < N } && column(vector) < classes {
                loaded[vector] = x.load_array::<WIDTH>(place + column(vector) as usize);
            }
        });
    }
    let mut elements = [[T::Sum::NEG_INFINITY; WIDTH]; N];
    let mut max = T::Sum::NEG_INFINITY;
    // SAFETY: columns of the row, each of which has its bias.
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
        // SAFETY: vectors of the row, which are this lane's.
        unsafe {
            unroll!(vector in 0..4 {
                if const { vector < N } && column(vector) < classes {
                    let result = elements[vector].map(|element| T::narrow(element - logarithm));
                    y.store_array(place + column(vector) as usize, result);
                }
            });
        }
    }
}
