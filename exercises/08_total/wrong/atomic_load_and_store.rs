//! The load is atomic, and so is the store, but another block can store between the two.

use cuda_std::atomic::Scope;
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
    // writes from the reads. Blocks change `total` by atomic operations alone.
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
            let old = total.atomic_load(Scope::Device, 0);
            total.atomic_store(Scope::Device, 0, old + sum);
        }
    }
}
