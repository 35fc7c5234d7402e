//! The stride is the size of a block, so several blocks compute the same elements.

use cuda_std::prelude::*;

#[kernel]
pub unsafe fn axpy(n: u32, a: f32, x: Global<f32>, y: GlobalMut<f32>) {
    let mut i = thread::index_1d() as usize;
    while i < n as usize {
        unsafe { y.store(i, a.mul_add(x.load(i), y.load(i))) };
        i += thread::block_dim_x() as usize;
    }
}
