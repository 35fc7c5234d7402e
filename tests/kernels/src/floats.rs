//! Kernels for `cuda_std::float`: fused multiply-add, maximum, fast exponentials, 16-bit floats.

use cuda_std::float::{Narrow, fast_exp2, fast_log2};
use cuda_std::prelude::*;

/// `out[i] = a[i] * b[i] + c[i]`, rounded once.
///
/// # Safety
///
/// All have `n` elements.
#[kernel(T = [f32, f64])]
pub unsafe fn fma<T: Real>(n: u32, a: Global<T>, b: Global<T>, c: Global<T>, out: GlobalMut<T>) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is below `n`, checked above.
        unsafe { out.store(i, a.load(i).mul_add(b.load(i), c.load(i))) };
    }
}

/// `out[i] = max(a[i], b[i])`.
///
/// # Safety
///
/// All have `n` elements.
#[kernel(T = [f32, f64])]
pub unsafe fn maximum<T: Real>(n: u32, a: Global<T>, b: Global<T>, out: GlobalMut<T>) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is below `n`, checked above.
        unsafe { out.store(i, a.load(i).maximum(b.load(i))) };
    }
}

/// `out[2 i] = 2^x[i]`, `out[2 i + 1] = log2 x[i]`.
///
/// # Safety
///
/// `x` has `n` elements, `out` twice as many.
#[kernel]
pub unsafe fn exponentials(n: u32, x: Global<f32>, out: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is below `n`, checked above.
        unsafe {
            let x = x.load(i);
            out.store2(2 * i, [fast_exp2(x), fast_log2(x)]);
        }
    }
}

/// `narrow[i]` is `x[i]` rounded, `wide[i]` is `narrow[i]` widened again.
///
/// # Safety
///
/// All have `n` elements.
#[kernel(T = [f16, bf16, f32])]
pub unsafe fn conversions<T: Narrow>(
    n: u32,
    x: Global<f32>,
    narrow: GlobalMut<T>,
    wide: GlobalMut<f32>,
) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is below `n`, checked above.
        unsafe {
            narrow.store(i, T::from_f32(x.load(i)));
            wide.store(i, narrow.load(i).to_f32());
        }
    }
}
