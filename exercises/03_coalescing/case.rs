//! A copy: each thread copies four elements.

use super::attempt::copy;
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 128;

/// Elements that a thread copies.
const ELEMENTS: u32 = 4;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let numbers = inputs::floats(n as usize);
    let x = gpu.upload(&numbers);
    let y = gpu.output::<f32>(n as usize);
    let config = LaunchConfig::new(n.div_ceil(BLOCK * ELEMENTS), BLOCK);
    gpu.launch(copy(), config, (n, x.read_only(), y.mutable()))?;
    gpu.expect("y", y, &numbers)
}
