//! # 23: Add up in f32
//!
//! A 16-bit float takes half the bytes of an f32, so a kernel that waits for memory can be twice as fast. But an f16
//! has 11 bits of mantissa, which are about 3 decimal digits. A sum loses what is smaller than half of its last bit:
//!
//! ```text
//! sum         1023.5 + 0.9 -> 1024     2047 + 0.9 -> 2048     2048 + 0.9 -> 2048     it stops growing
//! spacing       0.5                       1                      2
//! ```
//!
//! So kernels read and write 16-bit floats, and compute in f32. A product of two f16 is exact in f32, too.
//!
//! Here a warp adds up a row of 2048 numbers between 0.5 and 1.5. Each lane loads two neighbours with one instruction,
//! so that a request has 128 bytes, as with f32.
//!
//! Your task: compute the sums in f32. They are exact here. Do not change the loads: 32 requests for each row.
//!
//! The file as delivered fails with "sums[0] is" and a wrong number.

use cuda_std::float::Narrow;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Elements of a row.
const COLS: usize = 2048;

/// The sum, rounded to f16.
fn add(x: f16, y: f16) -> f16 {
    Narrow::from_f32(Narrow::to_f32(x) + Narrow::to_f32(y))
}

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
        let mut sum = f16::ZERO;
        for k in (2 * lane..COLS).step_by(64) {
            let [first, second] = x.load2(row * COLS + k);
            sum = add(add(sum, first), second);
        }
        for step in [16, 8, 4, 2, 1] {
            sum = add(sum, warp::shfl_xor(FULL_MASK, sum, step, WARP_SIZE));
        }
        if lane == 0 {
            sums.store(row, Narrow::to_f32(sum));
        }
    }
}
