//! The sum of each warp's elements.

use super::attempt::warp_sum;
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 64;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let numbers = inputs::floats(n as usize);
    let x = gpu.upload(&numbers);
    let sums = gpu.output::<f32>(n.div_ceil(32) as usize);
    let config = LaunchConfig::new(n.div_ceil(BLOCK), BLOCK);
    gpu.launch(warp_sum(), config, (n, x.read_only(), sums.mutable()))?;
    let wanted: Vec<f32> = numbers.chunks(32).map(|part| part.iter().sum()).collect();
    gpu.expect("sums", sums, &wanted)
}
