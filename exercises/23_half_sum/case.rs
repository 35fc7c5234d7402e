//! Sums of rows of 16-bit floats.

use super::attempt::sum_rows;
use exercises::prelude::*;

/// Warps of a block, and rows that it adds up.
const ROWS: u32 = 4;

/// Elements of a row.
const COLS: usize = 2048;

/// One run with `rows` rows.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    // From 0.5 to 1.5, in steps of 1/1024.
    let numbers: Vec<f16> = inputs::numbers(rows as usize * COLS, 1025)
        .into_iter()
        .map(|number| f16::from_f32(0.5 + number as f32 / 1024.0))
        .collect();
    let x = gpu.upload(&numbers);
    let sums = gpu.output::<f32>(rows as usize);
    let config = LaunchConfig::new(rows.div_ceil(ROWS), 32 * ROWS);
    gpu.launch(sum_rows(), config, (rows, x.read_only(), sums.mutable()))?;
    // Multiples of 1/1024 below 4096 are exact in f32, in any order.
    let sum = |row: &[f16]| row.iter().map(|&number| f32::from(number)).sum();
    let wanted: Vec<f32> = numbers.chunks(COLS).map(sum).collect();
    gpu.expect("sums", sums, &wanted)
}
