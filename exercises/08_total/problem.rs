//! # 08: Blocks add to one number
//!
//! Each block adds up its elements with shuffles and shared memory. Then its first thread adds the sum of the block to
//! `total[0]`. All blocks do so, and the hardware runs many blocks at the same time:
//!
//! ```text
//! block 0    load total (0)                 store 0 + 5
//! block 1              load total (0)                    store 0 + 7
//! total      0                              5            7             instead of 12
//! ```
//!
//! A GPU would lose some sums, now and then. The emulator finds the fault in any order of the blocks: nothing orders
//! the accesses of two blocks.
//!
//! An atomic load and an atomic store do not race, but the sum is lost all the same: another block can store between
//! the two. Load, addition and store must be one operation.
//!
//! Your task: add the sums of the blocks without a race. The order of the blocks may be any.
//!
//! The file as delivered fails with "race on global memory".

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// `total[0]` += the sum of `x`.
///
/// # Safety
///
/// `x` holds `n` elements, `total` holds one. Blocks have 128 threads.
#[kernel]
pub unsafe fn add_up(n: u32, x: Global<f32>, total: GlobalMut<f32>) {
    let sums = shared_array!(f32; 4);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    // SAFETY: `i` is less than `n` where `x` is read. Each warp writes one sum of four, and a barrier separates these
    // writes from the reads. But what orders the accesses to `total`?
    unsafe {
        let mut sum = if i < n as usize { x.load(i) } else { 0.0 };
        for step in [16, 8, 4, 2, 1] {
            sum += warp::shfl_xor(FULL_MASK, sum, step, WARP_SIZE);
        }
        if warp::lane_id() == 0 {
            sums.store(t / 32, sum);
        }
        thread::sync_threads();
        if t == 0 {
            let sum = sums.load(0) + sums.load(1) + sums.load(2) + sums.load(3);
            total.store(0, total.load(0) + sum);
        }
    }
}
