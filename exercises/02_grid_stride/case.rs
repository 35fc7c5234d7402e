//! `y[i] = a * x[i] + y[i]` by a grid of fixed size.

use super::attempt::axpy;
use exercises::prelude::*;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let a = 3.0;
    let xs = inputs::floats(n as usize);
    let ys: Vec<f32> = xs.iter().rev().copied().collect();
    let (x, y) = (gpu.upload(&xs), gpu.upload(&ys));
    // 256 threads, for any number of elements.
    let config = LaunchConfig::new(4, 64);
    gpu.launch(axpy(), config, (n, a, x.read_only(), y.mutable()))?;
    let wanted: Vec<f32> = xs.iter().zip(&ys).map(|(x, y)| a * x + y).collect();
    gpu.expect("y", y, &wanted)
}
