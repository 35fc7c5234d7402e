//! The index is that of the thread in its block, so all blocks compute the same elements.

use cuda_std::prelude::*;

#[kernel]
pub unsafe fn double(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::thread_idx_x() as usize;
    if i < n as usize {
        unsafe { y.store(i, 2.0 * x.load(i)) };
    }
}
