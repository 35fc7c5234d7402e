//! LogSoftmax of rows.

use super::attempt::log_softmax;
use exercises::prelude::*;

/// Warps of a block, and rows that it computes.
const ROWS: u32 = 4;

/// Columns of the matrix.
const COLS: u32 = 21;

/// One run with `rows` rows.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    // Rows of numbers near 100, near -100, and in odd rows one that is 120 more than its neighbours.
    let logit = |(i, number): (usize, f32)| {
        let (row, col) = (i / COLS as usize, i % COLS as usize);
        let near = if row % 4 < 2 { 100.0 } else { -100.0 };
        let peak = if row % 2 == 1 && col == 13 {
            120.0
        } else {
            0.0
        };
        near + peak + number / 4.0
    };
    let numbers = inputs::floats((rows * COLS) as usize);
    let logits: Vec<f32> = numbers.into_iter().enumerate().map(logit).collect();
    let x = gpu.upload(&logits);
    let y = gpu.output::<f32>(logits.len());
    let config = LaunchConfig::new(rows.div_ceil(ROWS), 32 * ROWS);
    let arguments = (rows, COLS, x.read_only(), y.mutable());
    gpu.launch(log_softmax(), config, arguments)?;
    let wanted: Vec<f64> = logits.chunks(COLS as usize).flat_map(exact).collect();
    gpu.expect_close("y", y, &wanted, 1e-3)
}

/// LogSoftmax of a row in f64.
fn exact(row: &[f32]) -> Vec<f64> {
    let row: Vec<f64> = row.iter().copied().map(f64::from).collect();
    let maximum = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|logit| (logit - maximum).exp()).sum();
    row.iter().map(|logit| logit - maximum - sum.ln()).collect()
}
