//! The sum of each block's elements.

use super::attempt::block_sum;
use exercises::prelude::*;

/// Threads of a block, and elements that it adds up.
const BLOCK: u32 = 256;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let numbers = inputs::floats(n as usize);
    let blocks = n.div_ceil(BLOCK);
    let x = gpu.upload(&numbers);
    let sums = gpu.output::<f32>(blocks as usize);
    let config = LaunchConfig::new(blocks, BLOCK);
    gpu.launch(block_sum(), config, (n, x.read_only(), sums.mutable()))?;
    let parts = numbers.chunks(BLOCK as usize);
    let wanted: Vec<f32> = parts.map(|part| part.iter().sum()).collect();
    gpu.expect("sums", sums, &wanted)
}
