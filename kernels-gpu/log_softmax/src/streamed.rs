//! Rows of any number of classes: a warp a row, which it reads twice.
//!
//! The first time each lane keeps the maximum of what it has seen and the sum of exponentials relative to that; a new maximum
//! scales the sum. (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.) The second time, from the
//! cache, it writes.

use crate::{BLOCK, Bias, Logarithm, Partial, SoftmaxElement};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// `Y[row, :] = LogSoftmax(X[row, :] + bias)`, a warp for a row.
///
/// # Safety
///
/// `x` and `y` have `rows` times `classes` elements, apart from each other; there is at least one class;
/// the bias has one for each if there is one; the launch is that of [`launch`](crate::launch).
#[kernel(name = "log_softmax_streamed", T = [f32, f64, f16, bf16])]
pub unsafe fn streamed<T: SoftmaxElement>(
    rows: u32,
    classes: u32,
    x: Global<T>,
    y: GlobalMut<T>,
    bias: Bias<T>,
) {
    let (warp, lane) = (thread::thread_idx_x() / WARP_SIZE, warp::lane_id());
    let row = u64::from(thread::block_idx_x()) * u64::from(BLOCK / WARP_SIZE) + u64::from(warp);
    if row >= u64::from(rows) {
        return;
    }
    let place = row as usize * classes as usize;
    let mut partial = Partial {
        max: T::Sum::NEG_INFINITY,
        sum: T::Sum::ZERO,
    };
    // SAFETY: elements of the row.
    unsafe {
        let mut column = lane;
        while column < classes {
            let [element] = bias.added([x.load(place + column as usize)], column);
            let max = if element > partial.max {
                element
            } else {
                partial.max
            };
            let sum = partial.scaled(max) + exponential(element, max);
            partial = Partial { max, sum };
            column += WARP_SIZE;
        }
    }
    let mut distance = WARP_SIZE / 2;
    while distance > 0 {
        let max = warp::shfl_xor(FULL_MASK, partial.max, distance, WARP_SIZE);
        let sum = warp::shfl_xor(FULL_MASK, partial.sum, distance, WARP_SIZE);
        partial = partial.join(Partial { max, sum });
        distance /= 2;
    }
    let (max, logarithm) = (partial.max, partial.sum.ln());
    // SAFETY: elements of the row, which are this lane's.
    unsafe {
        let mut column = lane;
        while column < classes {
            let place = place + column as usize;
            let [element] = bias.added([x.load(place)], column);
            y.store(place, T::narrow(element - max - logarithm));
            column += WARP_SIZE;
        }
    }
}

/// The exponential of an element with the maximum so far taken off; 0 for negative infinity, also where there is nothing greater yet.
#[inline(always)]
fn exponential<S: Logarithm>(element: S, max: S) -> S {
    if element == S::NEG_INFINITY {
        S::ZERO
    } else {
        (element - max).exp()
    }
}
