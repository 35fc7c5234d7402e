//! What follows the sums of a row in [`aggregate`](super::aggregate): bias, ReLU, LogSoftmax, and the store.

use super::{LANES, WIDTH};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;
use warprow_kernels_log_softmax::ExpLn;
use warprow_kernels_matrix::{DenseMut, unroll};

/// What follows the sums of a row.
#[repr(C)]
#[derive(KernelParam)]
pub struct NodeEpilogue<T> {
    /// Added to the sums; [`MAX_FEATURES`](super::MAX_FEATURES) elements.
    pub bias: Global<T>,
    /// Whether negative sums become 0, after the bias is added: 0 or 1. A NaN stays.
    pub relu: u32,
    /// Whether LogSoftmax is applied at the end: 0 or 1.
    pub log_softmax: u32,
    /// Whether all rows of Y start at a multiple of 16 bytes and of four elements, and have a multiple of four: 0 or 1.
    pub in_vectors: u32,
}

impl<T> Clone for NodeEpilogue<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for NodeEpilogue<T> {}

/// Applies the epilogue to a row's sums and writes the row, if `writes`.
///
/// # Safety
///
/// The kernel's contract; all lanes of the warp call it.
#[inline(always)]
pub(super) unsafe fn finish<T: ExpLn>(
    sums: [T; WIDTH],
    epilogue: &NodeEpilogue<T>,
    y: &DenseMut<T>,
    (row, writes): (u32, bool),
) {
    let feature = warp::lane_id() as usize % LANES as usize * WIDTH;
    // SAFETY: a bias has `MAX_FEATURES` elements; the row is Y's, and its columns are checked.
    unsafe {
        let bias = epilogue.bias.load_array(feature);
        let mut results = with_bias(sums, bias, epilogue.relu != 0);
        if epilogue.log_softmax != 0 {
            results = log_softmax(results, y.cols);
        }
        if !writes {
            return;
        }
        let row = y.data.offset(row as usize * y.stride as usize);
        if epilogue.in_vectors != 0 {
            if feature < y.cols as usize {
                row.store_array(feature, results);
            }
        } else {
            unroll!(k in 0..4 {
                if feature + k < y.cols as usize {
                    row.store(feature + k, results[k]);
                }
            });
        }
    }
}

/// Adds the bias, then sets negative elements to zero if `relu`.
#[inline(always)]
fn with_bias<T: Real>(elements: [T; WIDTH], bias: [T; WIDTH], relu: bool) -> [T; WIDTH] {
    array::from_fn(|k| {
        let sum = elements[k] + bias[k];
        if relu && sum < T::ZERO { T::ZERO } else { sum }
    })
}

/// LogSoftmax of a row of `columns` columns, of which each of the four lanes has four.
#[inline(always)]
fn log_softmax<T: ExpLn>(row: [T; WIDTH], columns: u32) -> [T; WIDTH] {
    let feature = warp::lane_id() % LANES * WIDTH as u32;
    let is_there = |k: usize| feature + (k as u32) < columns;
    let mut max = T::NEG_INFINITY;
    unroll!(k in 0..4 {
        if is_there(k) && row[k] > max {
            max = row[k];
        }
    });
    let mut distance = LANES / 2;
    while distance > 0 {
        let other = warp::shfl_xor(FULL_MASK, max, distance, LANES);
        if other > max {
            max = other;
        }
        distance /= 2;
    }
    let row = row.map(|element| element - max);
    let mut sum = T::ZERO;
    unroll!(k in 0..4 {
        if is_there(k) {
            sum += row[k].exp();
        }
    });
    let mut distance = LANES / 2;
    while distance > 0 {
        sum += warp::shfl_xor(FULL_MASK, sum, distance, LANES);
        distance /= 2;
    }
    let logarithm = sum.ln();
    row.map(|element| element - logarithm)
}
