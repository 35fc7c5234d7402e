//! What follows the sums of a row in [`aggregate`](super::aggregate): bias, ReLU, the product with the weights of the
//! next layer or LogSoftmax, and the store.

use super::{LANES, WIDTH};
use crate::weights::{
    COLUMN_STRIDE, PAIR, WeightElement, is_not_finite, load, multiply_on_cuda_cores,
};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
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
    /// Rows of the next layer's weights, one for each feature: 16 in f32, up to 16 in f64, and 0 if no weights follow.
    pub weight_rows: u32,
    /// The weights, by which the row is multiplied then: 16 [packed](crate::weights::pack) columns.
    pub weights: Global<T>,
    /// Whether LogSoftmax is applied, if no weights follow: 0 or 1.
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
pub(super) unsafe fn finish<T: ExpLn + WeightElement>(
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
        if epilogue.weight_rows != 0 {
            let row = if writes { row } else { NO_ROW };
            write_product(results, epilogue, y, row);
            return;
        }
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

/// No row.
const NO_ROW: u32 = u32::MAX;

/// Multiplies the warp's rows by the weights and writes them. `row` is the number of the lane's row, or [`NO_ROW`].
///
/// # Safety
///
/// The kernel's contract, and the epilogue has weights; all lanes of the warp call it.
#[inline(always)]
unsafe fn write_product<T: WeightElement>(
    elements: [T; WIDTH],
    epilogue: &NodeEpilogue<T>,
    y: &DenseMut<T>,
    row: u32,
) {
    let (g, t) = (warp::lane_id() / LANES, warp::lane_id() % LANES);
    let mut elements = elements;
    if const { T::IS_EXACT } {
        // With fewer than 16 features, the lanes past the last one hold copies or padding. That may be infinite or NaN,
        // and times a weight of 0 it is NaN.
        elements = array::from_fn(|q| {
            let is_there = t * (WIDTH as u32) + (q as u32) < epilogue.weight_rows;
            if is_there { elements[q] } else { T::ZERO }
        });
    }
    // SAFETY: there are 16 packed columns.
    let mut product = T::multiply(elements, unsafe { load(epilogue.weights) });
    if const { !T::IS_EXACT } {
        let mut probe = T::ZERO;
        unroll!(i in 0..2 {
            unroll!(k in 0..2 {
                probe = product[i][k].mul_add(T::ZERO, probe);
            });
        });
        if is_not_finite(probe) {
            // SAFETY: there are 16 packed columns.
            product = unsafe { multiply_on_cuda_cores(elements, epilogue.weights) };
        }
    }
    unroll!(i in 0..2 {
        let of_row = (PAIR as u32 * t + i as u32) * LANES;
        let row = warp::shfl_idx(FULL_MASK, row, of_row, WARP_SIZE);
        if row != NO_ROW {
            let row = y.data.offset(row as usize * y.stride as usize);
            unroll!(k in 0..2 {
                let column = g as usize + k * COLUMN_STRIDE;
                if column < y.cols as usize {
                    // SAFETY: the row is Y's, and the column is checked.
                    unsafe { row.store(column, product[i][k]) };
                }
            });
        }
    });
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
