//! The comparison lets one element too many through.

use cuda_std::prelude::*;

#[kernel]
pub unsafe fn axpy(n: u32, a: f32, x: Global<f32>, y: GlobalMut<f32>) {
    let threads = thread::grid_dim_x() as usize * thread::block_dim_x() as usize;
    let mut i = thread::index_1d() as usize;
    while i <= n as usize {
        unsafe { y.store(i, a.mul_add(x.load(i), y.load(i))) };
        i += threads;
    }
}
