//! Lanes without a class return before the shuffles, which name them.

use core::f32::consts::{LN_2, LOG2_E};
use cuda_std::float::{fast_exp2, fast_log2};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// `y` = LogSoftmax of each row of `x`, one warp for each row.
///
/// # Safety
///
/// `x` and `y` hold `rows` x `cols` elements each; `cols` is at most 32. Blocks have whole warps.
#[kernel]
pub unsafe fn log_softmax(rows: u32, cols: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let row = (thread::index_1d() / 32) as usize;
    if row >= rows as usize {
        return;
    }
    let lane = warp::lane_id() as usize;
    let i = row * cols as usize + lane;
    let has_class = lane < cols as usize;
    if !has_class {
        return;
    }
    let logit = unsafe { x.load(i) };
    let mut maximum = logit;
    for step in [16, 8, 4, 2, 1] {
        maximum = maximum.max(warp::shfl_xor(FULL_MASK, maximum, step, WARP_SIZE));
    }
    let logit = logit - maximum;
    let mut sum = fast_exp2(logit * LOG2_E);
    for step in [16, 8, 4, 2, 1] {
        sum += warp::shfl_xor(FULL_MASK, sum, step, WARP_SIZE);
    }
    if has_class {
        unsafe { y.store(i, logit - fast_log2(sum) * LN_2) };
    }
}
