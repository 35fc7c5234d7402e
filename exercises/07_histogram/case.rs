//! A histogram of numbers less than 16.

use super::attempt::histogram;
use exercises::prelude::*;

/// Number of bins.
const BINS: usize = 16;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let numbers = inputs::numbers(n as usize, BINS as u32);
    let x = gpu.upload(&numbers);
    let counts = gpu.zeros::<u32>(BINS);
    let config = LaunchConfig::new(4, 256);
    gpu.launch(histogram(), config, (n, x.read_only(), counts.mutable()))?;
    let mut wanted = [0; BINS];
    for number in numbers {
        wanted[number as usize] += 1;
    }
    gpu.expect("counts", counts, &wanted)
}
