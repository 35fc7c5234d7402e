//! The sum is right, but each load brings two bytes to a lane: twice as many requests.

use cuda_std::float::Narrow;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Elements of a row.
const COLS: usize = 2048;

/// `sums[row]` = the sum of the 2048 elements of the row, one warp for each row.
///
/// # Safety
///
/// `x` holds `rows` x 2048 elements and starts at a multiple of 4 bytes; `sums` holds `rows`. Blocks have whole warps.
#[kernel]
pub unsafe fn sum_rows(rows: u32, x: Global<f16>, sums: GlobalMut<f32>) {
    let row = (thread::index_1d() / 32) as usize;
    if row >= rows as usize {
        return;
    }
    let lane = warp::lane_id() as usize;
    unsafe {
        let mut sum = 0.0;
        for k in (lane..COLS).step_by(32) {
            sum += Narrow::to_f32(x.load(row * COLS + k));
        }
        for step in [16, 8, 4, 2, 1] {
            sum += warp::shfl_xor(FULL_MASK, sum, step, WARP_SIZE);
        }
        if lane == 0 {
            sums.store(row, sum);
        }
    }
}
