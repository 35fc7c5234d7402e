//! A thread still copies two elements side by side, so the lanes are two elements apart.

use cuda_std::prelude::*;

#[kernel]
pub unsafe fn copy(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let t = thread::thread_idx_x() as usize;
    let first = thread::block_idx_x() as usize * 512;
    for k in 0..4 {
        let i = first + k / 2 * 256 + 2 * t + k % 2;
        if i < n as usize {
            unsafe { y.store(i, x.load(i)) };
        }
    }
}
