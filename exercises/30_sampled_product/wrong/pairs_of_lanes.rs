//! Two lanes take a nonzero, so a request still touches 16 rows.

use cuda_std::prelude::*;

/// Threads of a block.
pub const BLOCK: u32 = 128;

/// Elements of a row of `u` and `v`.
const FEATURES: usize = 32;

/// Blocks of the launch.
pub fn blocks(nonzeros: u32) -> u32 {
    nonzeros.div_ceil(BLOCK / 2).max(1)
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
    let k = (thread::index_1d() / 2) as usize;
    if k >= nonzeros as usize {
        return;
    }
    let lane = warp::lane_id() as usize % 2;
    let mask = 3 << (warp::lane_id() / 2 * 2);
    unsafe {
        let (row, col) = (row_idx.load(k) as usize, col_idx.load(k) as usize);
        let mut score = 0.0;
        for f in (0..FEATURES).step_by(2) {
            score += u.load(FEATURES * row + f + lane) * v.load(FEATURES * col + f + lane);
        }
        score += warp::shfl_xor(mask, score, 1, 2);
        if lane == 0 {
            scores.store(k, score);
        }
    }
}
