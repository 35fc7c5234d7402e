//! The sum of all elements, by many blocks.

use super::attempt::add_up;
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 128;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let numbers = inputs::floats(n as usize);
    let x = gpu.upload(&numbers);
    let total = gpu.zeros::<f32>(1);
    let config = LaunchConfig::new(n.div_ceil(BLOCK), BLOCK);
    gpu.launch(add_up(), config, (n, x.read_only(), total.mutable()))?;
    gpu.expect("total", total, &[numbers.iter().sum()])
}
