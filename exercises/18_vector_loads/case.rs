//! `y[i] = 2 * x[i]`, four elements for each thread.

use super::attempt::double_by_four;
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 128;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let numbers = inputs::floats(n as usize);
    let x = gpu.upload(&numbers);
    let y = gpu.output::<f32>(n as usize);
    let config = LaunchConfig::new(n.div_ceil(4 * BLOCK), BLOCK);
    gpu.launch(double_by_four(), config, (n, x.read_only(), y.mutable()))?;
    let wanted: Vec<f32> = numbers.iter().map(|number| 2.0 * number).collect();
    gpu.expect("y", y, &wanted)
}
