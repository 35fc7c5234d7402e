//! # 30: A product of rows for each nonzero
//!
//! A graph network with attention gives each edge of the graph a score: the dot product of two rows of features, one
//! for each end of the edge. It computes a number only for each nonzero, so it is called a sampled product (SDDMM):
//!
//! ```text
//! nonzero k in row r and column c     scores[k] = u[r, 0] * v[c, 0] + u[r, 1] * v[c, 1] + ... + u[r, 31] * v[c, 31]
//! ```
//!
//! The kernel as delivered takes a thread for each nonzero. In each step the lanes load element f of 32 different rows,
//! which lie in 32 sectors. A lane needs the rest of its sector only later, and it may have left the cache by then.
//!
//! Your task: let no load request touch more than 4 sectors. You also choose the number of blocks: change `blocks`.
//!
//! The file as delivered fails with about 19 "sectors per load request; the maximum is 4". It is not 32, because
//! neighbouring nonzeros often have the same row of U.

use cuda_std::prelude::*;

/// Threads of a block.
pub const BLOCK: u32 = 128;

/// Elements of a row of `u` and `v`.
const FEATURES: usize = 32;

/// Blocks of the launch.
pub fn blocks(nonzeros: u32) -> u32 {
    nonzeros.div_ceil(BLOCK).max(1)
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
    let k = thread::index_1d() as usize;
    if k >= nonzeros as usize {
        return;
    }
    // SAFETY: `k` is less than `nonzeros`, the length of `row_idx`, `col_idx` and `scores`. `u` and `v` have the rows
    // that nonzero k names, by the contract, and `f` is less than their 32 elements.
    unsafe {
        let (row, col) = (row_idx.load(k) as usize, col_idx.load(k) as usize);
        let mut score = 0.0;
        for f in 0..FEATURES {
            score += u.load(FEATURES * row + f) * v.load(FEATURES * col + f);
        }
        scores.store(k, score);
    }
}
