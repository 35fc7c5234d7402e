//! First kernels: threads that write down where they are, and threads that compute one element each.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Thread `i` writes its block, its warp in the block, and its lane in the warp to element `i` of the three arrays.
///
/// # Safety
///
/// `block`, `warp` and `lane` hold `n` elements each.
#[kernel]
pub unsafe fn hello(n: u32, block: GlobalMut<u32>, warp: GlobalMut<u32>, lane: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is less than `n`, the length of all three.
        unsafe {
            block.store(i, thread::block_idx_x());
            warp.store(i, thread::thread_idx_x() / WARP_SIZE);
            lane.store(i, warp::lane_id());
        }
    }
}

/// `y[i] += a * x[i]`, one thread per element.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each.
#[kernel(T = [f32])]
pub unsafe fn axpy<T: Real>(n: u32, a: T, x: Global<T>, y: GlobalMut<T>) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is less than `n`, the length of both.
        unsafe { y.store(i, a.mul_add(x.load(i), y.load(i))) };
    }
}

/// [`axpy`] without its guard, which the emulator reports as soon as a thread has no element.
///
/// # Safety
///
/// `x` and `y` hold an element for each thread of the launch.
#[kernel(T = [f32])]
pub unsafe fn axpy_without_guard<T: Real>(a: T, x: Global<T>, y: GlobalMut<T>) {
    let i = thread::index_1d() as usize;
    // SAFETY: there is an element for each thread.
    unsafe { y.store(i, a.mul_add(x.load(i), y.load(i))) };
}
