//! The sum of all elements: the last block adds up the sums of all blocks.

use super::attempt::last_block_adds;
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 128;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let numbers = inputs::floats(n as usize);
    let blocks = n.div_ceil(BLOCK);
    let x = gpu.upload(&numbers);
    let sums = gpu.output::<f32>(blocks as usize);
    let ticket = gpu.zeros::<u32>(1);
    let total = gpu.output::<f32>(1);
    let config = LaunchConfig::new(blocks, BLOCK);
    let arguments = (
        n,
        x.read_only(),
        sums.mutable(),
        ticket.mutable(),
        total.mutable(),
    );
    gpu.launch(last_block_adds(), config, arguments)?;
    gpu.expect("total", total, &[numbers.iter().sum()])
}
