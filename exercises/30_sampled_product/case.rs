//! The dot product of two rows for each nonzero.

use super::attempt::{BLOCK, blocks, scores};
use exercises::prelude::*;

/// Elements of a row of U and V.
const FEATURES: usize = 32;

/// One run with a matrix of `rows` rows.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    let matrix = inputs::Csr::typical(rows, rows + 130);
    let (row_idx, cols) = (matrix.row_idx(), matrix.cols as usize);
    let nonzeros = row_idx.len() as u32;
    let us = inputs::floats(rows as usize * FEATURES);
    let vs = inputs::floats((rows as usize + cols) * FEATURES).split_off(us.len());
    let (of_rows, of_cols) = (gpu.upload(&row_idx), gpu.upload(&matrix.col_idx));
    let (u, v) = (gpu.upload(&us), gpu.upload(&vs));
    let found = gpu.output::<f32>(row_idx.len());
    let arguments = (
        nonzeros,
        of_rows.read_only(),
        of_cols.read_only(),
        u.read_only(),
        v.read_only(),
        found.mutable(),
    );
    gpu.launch(
        scores(),
        LaunchConfig::new(blocks(nonzeros), BLOCK),
        arguments,
    )?;
    let row_of = |matrix: &[f32], row: u32| matrix[row as usize * FEATURES..][..FEATURES].to_vec();
    let score = |(&row, &col): (&u32, &u32)| -> f32 {
        let products = row_of(&us, row).into_iter().zip(row_of(&vs, col));
        products.map(|(u, v)| u * v).sum()
    };
    let wanted: Vec<f32> = row_idx.iter().zip(&matrix.col_idx).map(score).collect();
    gpu.expect("scores", found, &wanted)
}
