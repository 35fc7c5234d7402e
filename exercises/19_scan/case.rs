//! The partial sums of each block's elements.

use super::attempt::scan;
use exercises::prelude::*;

/// Threads of a block, and elements that it scans.
const BLOCK: u32 = 256;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let numbers = inputs::floats(n as usize);
    let x = gpu.upload(&numbers);
    let y = gpu.output::<f32>(n as usize);
    let config = LaunchConfig::new(n.div_ceil(BLOCK), BLOCK);
    gpu.launch(scan(), config, (n, x.read_only(), y.mutable()))?;
    let sums_of = |part: &[f32]| {
        let mut sum = 0.0;
        let sums = part.iter().map(|number| {
            sum += number;
            sum
        });
        sums.collect::<Vec<f32>>()
    };
    let parts = numbers.chunks(BLOCK as usize);
    let wanted: Vec<f32> = parts.flat_map(sums_of).collect();
    gpu.expect("y", y, &wanted)
}
