//! Each element becomes an f32 before it is added, and the partial sums stay in f32.

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
    // SAFETY: `row` is less than `rows`, and `k` is less than the length of a row. All lanes have the same row.
    unsafe {
        let mut sum = 0.0;
        for k in (2 * lane..COLS).step_by(64) {
            let [first, second] = x.load2(row * COLS + k);
            sum += Narrow::to_f32(first);
            sum += Narrow::to_f32(second);
        }
        for step in [16, 8, 4, 2, 1] {
            sum += warp::shfl_xor(FULL_MASK, sum, step, WARP_SIZE);
        }
        if lane == 0 {
            sums.store(row, sum);
        }
    }
}
