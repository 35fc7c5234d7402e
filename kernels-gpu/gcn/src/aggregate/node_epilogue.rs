//! What follows the sums of a row in [`aggregate`](super::aggregate): bias, weights, ReLU, LogSoftmax, and the store.

use super::{LANES, MAX_TILES, TILE, WIDTH};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;
use warprow_kernels_log_softmax::ExpLn;
use warprow_kernels_matrix::{DenseMut, Operand, unroll};

/// What follows the sums of a row.
#[repr(C)]
#[derive(KernelParam)]
pub struct NodeEpilogue<T> {
    /// Added to the sums; [`MAX_FEATURES`](super::MAX_FEATURES) elements.
    pub bias: Global<T>,
    /// The weights: for each feature and tile of columns [`TILE`] elements, with zeros past the last column. Not read
    /// if there are no tiles.
    pub weights: Global<T>,
    /// Added to the product with the weights; a [`TILE`] for each tile. Not read if there are no tiles.
    pub output_bias: Global<T>,
    /// Rows of the weights. X may have further columns, up to a multiple of 4.
    pub features: u32,
    /// Whether negative sums become 0, after the bias is added: 0 or 1. A NaN stays.
    pub relu: u32,
    /// Tiles of the weights, at most 4; 0 if there are none.
    pub tiles: u32,
    /// The same as `relu` for the product with the weights.
    pub output_relu: u32,
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

/// The vectors of a lane: one for each tile.
type Vectors<T> = [[T; WIDTH]; MAX_TILES];

/// Applies the epilogue to a row's sums and writes the row, if `writes`.
///
/// # Safety
///
/// The kernel's contract; all lanes of the warp call it.
#[inline(always)]
pub(super) unsafe fn finish<T: Operand<Sum = T> + ExpLn>(
    sums: [T; WIDTH],
    epilogue: &NodeEpilogue<T>,
    y: &DenseMut<T>,
    (row, writes): (u32, bool),
) {
    let part = warp::lane_id() % LANES;
    let feature = part as usize * WIDTH;
    // SAFETY: a bias has `MAX_FEATURES` elements, or a tile for each tile.
    unsafe {
        let sums = with_bias(sums, epilogue.bias.load_array(feature), epilogue.relu != 0);
        let mut results = [[T::ZERO; WIDTH]; MAX_TILES];
        if epilogue.tiles == 0 {
            results[0] = sums;
        } else {
            results = multiply(sums, epilogue);
            unroll!(tile in 0..4 {
                if (tile as u32) < epilogue.tiles {
                    let bias = epilogue.output_bias.load_array(tile * TILE as usize + feature);
                    results[tile] = with_bias(results[tile], bias, epilogue.output_relu != 0);
                }
            });
        }
        if epilogue.log_softmax != 0 {
            results = log_softmax(results, y.cols);
        }
        if !writes {
            return;
        }
        let row = y.data.offset(row as usize * y.stride as usize);
        unroll!(tile in 0..4 {
            let column = tile * TILE as usize + feature;
            if epilogue.in_vectors != 0 {
                if column < y.cols as usize {
                    row.store_array(column, results[tile]);
                }
            } else {
                unroll!(k in 0..4 {
                    if column + k < y.cols as usize {
                        row.store(column + k, results[tile][k]);
                    }
                });
            }
        });
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

/// The product of a row, of which each of the four lanes has four features, with the weights.
///
/// # Safety
///
/// The kernel's contract; all lanes of the warp call it.
#[inline(always)]
unsafe fn multiply<T: Real + Operand<Sum = T>>(
    row: [T; WIDTH],
    epilogue: &NodeEpilogue<T>,
) -> Vectors<T> {
    let (features, tiles) = (epilogue.features, epilogue.tiles);
    let mut products = [[T::ZERO; WIDTH]; MAX_TILES];
    let mut lane = 0;
    let mut weights = epilogue
        .weights
        .offset(warp::lane_id() as usize % LANES as usize * WIDTH);
    while lane * (WIDTH as u32) < features {
        unroll!(k in 0..4 {
            let element = warp::shfl_idx(FULL_MASK, row[k], lane, LANES);
            unroll!(tile in 0..4 {
                if (tile as u32) < tiles && lane * (WIDTH as u32) + (k as u32) < features {
                    // SAFETY: there is a tile of weights for each feature below `features`, and each tile.
                    let weights: [T; WIDTH] = unsafe { weights.load_array(tile * TILE as usize) };
                    products[tile] = array::from_fn(|j| element.mul_add(weights[j], products[tile][j]));
                }
            });
            weights = weights.offset((tiles * TILE) as usize);
        });
        lane += 1;
    }
    products
}

/// LogSoftmax of a row of `columns` columns.
#[inline(always)]
fn log_softmax<T: ExpLn>(row: Vectors<T>, columns: u32) -> Vectors<T> {
    let feature = warp::lane_id() % LANES * WIDTH as u32;
    let is_there = |tile: usize, k: usize| tile as u32 * TILE + feature + (k as u32) < columns;
    let mut max = T::NEG_INFINITY;
    unroll!(tile in 0..4 {
        unroll!(k in 0..4 {
            if is_there(tile, k) && row[tile][k] > max {
                max = row[tile][k];
            }
        });
    });
    let mut distance = LANES / 2;
    while distance > 0 {
        let other = warp::shfl_xor(FULL_MASK, max, distance, LANES);
        if other > max {
            max = other;
        }
        distance /= 2;
    }
    let mut row = row;
    let mut sum = T::ZERO;
    unroll!(tile in 0..4 {
        if (tile as u32) * TILE < columns {
            unroll!(k in 0..4 {
                row[tile][k] = row[tile][k] - max;
                if is_there(tile, k) {
                    sum += row[tile][k].exp();
                }
            });
        }
    });
    let mut distance = LANES / 2;
    while distance > 0 {
        sum += warp::shfl_xor(FULL_MASK, sum, distance, LANES);
        distance /= 2;
    }
    let logarithm = sum.ln();
    row.map(|vector| vector.map(|element| element - logarithm))
}
