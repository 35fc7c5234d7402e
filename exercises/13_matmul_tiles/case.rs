//! The product of two square matrices.

use super::attempt::multiply;
use exercises::prelude::*;

/// Rows and columns of C that a block computes.
const TILE: u32 = 16;

/// One run with matrices of `n` x `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let size = n as usize;
    let first = inputs::floats(size * size);
    let second: Vec<f32> = first.iter().rev().copied().collect();
    let (a, b) = (gpu.upload(&first), gpu.upload(&second));
    let c = gpu.output::<f32>(size * size);
    let blocks = n.div_ceil(TILE);
    let config = LaunchConfig::new((blocks, blocks), (TILE, TILE));
    let arguments = (n, a.read_only(), b.read_only(), c.mutable());
    gpu.launch(multiply(), config, arguments)?;
    let element = |i: usize| {
        let (row, col) = (i / size, i % size);
        (0..size)
            .map(|k| first[row * size + k] * second[k * size + col])
            .sum()
    };
    let wanted: Vec<f32> = (0..size * size).map(element).collect();
    gpu.expect("c", c, &wanted)
}
