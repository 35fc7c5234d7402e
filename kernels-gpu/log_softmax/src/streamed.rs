//! LogSoftmax of rows with any number of classes: a warp computes a row and reads it twice.
//!
//! In the first pass, each lane reads every 32nd element. It keeps the maximum so far and the sum of exponentials
//! relative to it; a new maximum scales the sum. Shuffles combine the lanes. In the second pass the warp reads the row
//! again, from the cache, and writes the results.
//!
//! An element costs two loads, two exponentials and one store.
//!
//! When to use it: for rows too long for [`staged`](mod@crate::staged).
//!
//! Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.

use crate::{BLOCK, Bias, ExpLn, PartialSoftmax, SoftmaxElement};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Dense, DenseMut};

/// `Y[row, :] = LogSoftmax(X[row, :] + bias)`; a warp computes a row.
///
/// # Safety
///
/// `x` and `y` are m x n and do not overlap. n is at least 1. The bias, if there is one, has n elements. The launch is
/// that of [`SoftmaxKernel::launch`](crate::SoftmaxKernel::launch).
#[kernel(name = "log_softmax_streamed", T = [f32, f64, f16, bf16])]
pub unsafe fn streamed<T: SoftmaxElement>(x: Dense<T>, y: DenseMut<T>, bias: Bias<T>) {
    let (rows, classes) = (x.rows, x.cols);
    let (warp, lane) = (thread::thread_idx_x() / WARP_SIZE, warp::lane_id());
    let row = u64::from(thread::block_idx_x()) * u64::from(BLOCK / WARP_SIZE) + u64::from(warp);
    if row >= u64::from(rows) {
        return;
    }
    let row_of_x = x.data.offset(row as usize * x.stride as usize);
    let row_of_y = y.data.offset(row as usize * y.stride as usize);
    let mut partial = PartialSoftmax {
        max: T::Sum::NEG_INFINITY,
        sum: T::Sum::ZERO,
    };
    // SAFETY: `row < rows` and `column < classes`, checked above, so X has the element and the bias the class.
    unsafe {
        let mut column = lane;
        while column < classes {
            let [element] = bias.added([row_of_x.load(column as usize)], column);
            let max = if element > partial.max {
                element
            } else {
                partial.max
            };
            let sum = partial.scaled(max) + exponential(element, max);
            partial = PartialSoftmax { max, sum };
            column += WARP_SIZE;
        }
    }
    let mut distance = WARP_SIZE / 2;
    while distance > 0 {
        let max = warp::shfl_xor(FULL_MASK, partial.max, distance, WARP_SIZE);
        let sum = warp::shfl_xor(FULL_MASK, partial.sum, distance, WARP_SIZE);
        partial = partial.join(PartialSoftmax { max, sum });
        distance /= 2;
    }
    let (max, logarithm) = (partial.max, partial.sum.ln());
    // SAFETY: as above; no other lane writes these elements.
    unsafe {
        let mut column = lane;
        while column < classes {
            let [element] = bias.added([row_of_x.load(column as usize)], column);
            row_of_y.store(column as usize, T::narrow(element - max - logarithm));
            column += WARP_SIZE;
        }
    }
}

/// The exponential of an element minus the maximum so far. It is 0 for negative infinity, even if the maximum is
/// negative infinity too.
#[inline(always)]
fn exponential<S: ExpLn>(element: S, max: S) -> S {
    if element == S::NEG_INFINITY {
        S::ZERO
    } else {
        (element - max).exp()
    }
}
