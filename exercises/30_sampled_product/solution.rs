//! A warp takes a nonzero, and a lane takes a feature.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads of a block.
pub const BLOCK: u32 = 128;

/// Elements of a row of `u` and `v`.
const FEATURES: usize = 32;

/// Blocks of the launch.
pub fn blocks(nonzeros: u32) -> u32 {
    nonzeros.div_ceil(BLOCK / WARP_SIZE).max(1)
}

/// `scores[k]` = the product of row `row_idx[k]` of `u` and row `col_idx[k]` of `v`.
///
/// # Safety
///
/// `row_idx`, `col_idx` and `scores` hold `nonzeros` elements each. `u` and `v` have rows of 32 elements, and all rows
/// that are named.
#[kernel]
pub unsafe fn scores(
    nonzeros: u32,
    row_idx: Global<u32>,
    col_idx: Global<u32>,
    u: Global<f32>,
    v: Global<f32>,
    scores: GlobalMut<f32>,
) {
    let k = (thread::index_1d() / 32) as usize;
    if k >= nonzeros as usize {
        return;
    }
    let lane = warp::lane_id() as usize;
    // SAFETY: `k` is less than `nonzeros`, the length of `row_idx`, `col_idx` and `scores`. `u` and `v` have the rows
    // that nonzero k names, by the contract, and `lane` is less than their 32 elements. All lanes of a warp have the
    // same `k`, so they all return above or all reach the shuffles.
    unsafe {
        let (row, col) = (row_idx.load(k) as usize, col_idx.load(k) as usize);
        let mut score = u.load(FEATURES * row + lane) * v.load(FEATURES * col + lane);
        for step in [16, 8, 4, 2, 1] {
            score += warp::shfl_xor(FULL_MASK, score, step, WARP_SIZE);
        }
        if lane == 0 {
            scores.store(k, score);
        }
    }
}
