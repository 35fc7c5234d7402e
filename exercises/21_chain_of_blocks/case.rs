//! The total of all elements up to the end of each block, by a chain of blocks.

use super::attempt::chain;
use exercises::prelude::*;

/// Threads of a block, and elements that it adds up.
const BLOCK: u32 = 128;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let numbers = inputs::floats(n as usize);
    let blocks = n.div_ceil(BLOCK);
    let x = gpu.upload(&numbers);
    let totals = gpu.output::<f32>(blocks as usize);
    let flags = gpu.zeros::<u32>(blocks as usize);
    let ticket = gpu.zeros::<u32>(1);
    let config = LaunchConfig::new(blocks, BLOCK);
    let arguments = (
        n,
        x.read_only(),
        totals.mutable(),
        flags.mutable(),
        ticket.mutable(),
    );
    gpu.launch(chain(), config, arguments)?;
    let mut total = 0.0;
    let parts = numbers.chunks(BLOCK as usize);
    let wanted: Vec<f32> = parts
        .map(|part| {
            total += part.iter().sum::<f32>();
            total
        })
        .collect();
    gpu.expect("totals", totals, &wanted)
}
