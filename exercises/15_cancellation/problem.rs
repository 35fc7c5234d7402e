//! # 15: Cancellation in f32
//!
//! The variance of numbers is the mean of their squares minus the square of their mean. This formula needs one pass
//! over the numbers. It is right in exact arithmetic, but not in f32:
//!
//! ```text
//!                        exact           in f32
//! mean of the squares    100000019.5     100000000     an f32 near 10^8 is a multiple of 8, and each sum is rounded
//! square of the mean     100000000       100000000
//! difference                    19.5             0     the digits that are equal cancel; what is left was lost before
//! ```
//!
//! This is called cancellation. The rounding errors of large numbers are small, but they are large against the
//! difference. GPUs have few units for f64, so kernels are written in f32 where they can be.
//!
//! A sensor has 48 samples near 10000. Sample k of sensor i is `samples[k * sensors + i]`, so loads are coalesced.
//!
//! Your task: compute the variance with an error of at most 0.1 %. Use f32. (The check does not notice
//! f64, but you would learn nothing.)
//!
//! The file as delivered fails with "variance[0] is 0, wanted is 19.5" and more digits.

use cuda_std::prelude::*;

/// Samples of a sensor.
const SAMPLES: usize = 48;

/// The variance of the samples of each sensor, one thread for each sensor.
///
/// # Safety
///
/// `samples` holds 48 x `sensors` elements, `variance` holds `sensors`.
#[kernel]
pub unsafe fn variances(sensors: u32, samples: Global<f32>, variance: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    if i >= sensors as usize {
        return;
    }
    // SAFETY: `i` is less than `sensors`, and `k` is less than the number of samples.
    unsafe {
        let sample = |k: usize| samples.load(k * sensors as usize + i);
        let (mut sum, mut squares) = (0.0, 0.0);
        for k in 0..SAMPLES {
            sum += sample(k);
            squares += sample(k) * sample(k);
        }
        let mean = sum / SAMPLES as f32;
        variance.store(i, squares / SAMPLES as f32 - mean * mean);
    }
}
