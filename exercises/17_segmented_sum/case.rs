//! A sparse matrix times a vector, with one thread for each nonzero.

use super::attempt::{Matrix, spmv_segmented};
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 128;

/// One run with a matrix of `rows` rows.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    let matrix = inputs::Csr::typical(rows, rows + 130);
    let numbers = inputs::floats(matrix.cols as usize);
    let nonzeros = matrix.col_idx.len() as u32;
    let a = Matrix {
        nonzeros,
        row_idx: gpu.upload(&matrix.row_idx()).read_only(),
        col_idx: gpu.upload(&matrix.col_idx).read_only(),
        values: gpu.upload(&matrix.values).read_only(),
    };
    let x = gpu.upload(&numbers);
    let y = gpu.zeros::<f32>(rows as usize);
    let config = LaunchConfig::new(nonzeros.div_ceil(BLOCK).max(1), BLOCK);
    gpu.launch(spmv_segmented(), config, (a, x.read_only(), y.mutable()))?;
    gpu.expect("y", y, &matrix.times(&numbers))
}
