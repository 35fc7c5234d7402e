//! A fused multiply-add saves one rounding of each square, but the sum of the squares still rounds.

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
            squares = sample(k).mul_add(sample(k), squares);
        }
        let mean = sum / SAMPLES as f32;
        variance.store(i, squares / SAMPLES as f32 - mean * mean);
    }
}
