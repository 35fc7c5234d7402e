//! The transpose of a matrix.

use super::attempt::transpose;
use exercises::prelude::*;

/// One run with a matrix of `rows` rows, and two thirds as many columns.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    // The size of the bounds has whole tiles.
    let cols = if rows.is_multiple_of(64) {
        rows / 2
    } else {
        rows * 2 / 3 + 1
    };
    let numbers = inputs::floats((rows * cols) as usize);
    let matrix = gpu.upload(&numbers);
    let out = gpu.output::<f32>(numbers.len());
    let config = LaunchConfig::new((cols.div_ceil(32), rows.div_ceil(32)), (32, 8));
    gpu.launch(
        transpose(),
        config,
        (rows, cols, matrix.read_only(), out.mutable()),
    )?;
    let (rows, cols) = (rows as usize, cols as usize);
    let element = |i: usize| numbers[i % rows * cols + i / rows];
    let wanted: Vec<f32> = (0..numbers.len()).map(element).collect();
    gpu.expect("out", out, &wanted)
}
