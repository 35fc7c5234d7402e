//! Each element times the sum of a part of a table.

use super::attempt::weigh;
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 64;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let (numbers, weights) = (inputs::floats(n as usize), inputs::floats(16));
    let (x, table) = (gpu.upload(&numbers), gpu.upload(&weights));
    let y = gpu.output::<f32>(n as usize);
    let config = LaunchConfig::new(n.div_ceil(BLOCK), BLOCK);
    let arguments = (n, x.read_only(), table.read_only(), y.mutable());
    gpu.launch(weigh(), config, arguments)?;
    let sums: [f32; 2] = [weights[..2].iter().sum(), weights.iter().sum()];
    let pairs = (0..).zip(&numbers);
    let wanted: Vec<f32> = pairs
        .map(|(i, number): (usize, _)| number * sums[i % 2])
        .collect();
    gpu.expect("y", y, &wanted)
}
