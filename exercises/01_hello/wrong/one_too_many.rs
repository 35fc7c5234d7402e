//! The comparison lets one thread too many through.

use cuda_std::prelude::*;

#[kernel]
pub unsafe fn double(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    if i <= n as usize {
        unsafe { y.store(i, 2.0 * x.load(i)) };
    }
}
