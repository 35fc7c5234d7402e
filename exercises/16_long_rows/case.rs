//! A sparse matrix with a few long rows times a vector.

use super::attempt::{BLOCK, Matrix, blocks, spmv_long_rows};
use exercises::prelude::*;

/// One run with a matrix of `rows` rows. Row 0 and each 400th row have 300 nonzeros, the others at most 3.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    let length = |row: u32| match row % 400 {
        0 => 300,
        _ => (inputs::hash(row.into()) % 4) as u32,
    };
    let matrix = inputs::Csr::new(rows, rows + 400, length);
    let numbers = inputs::floats(matrix.cols as usize);
    let nonzeros = matrix.col_idx.len() as u32;
    let a = Matrix {
        rows,
        nonzeros,
        row_ptr: gpu.upload(&matrix.row_ptr).read_only(),
        row_idx: gpu.upload(&matrix.row_idx()).read_only(),
        col_idx: gpu.upload(&matrix.col_idx).read_only(),
        values: gpu.upload(&matrix.values).read_only(),
    };
    let x = gpu.upload(&numbers);
    let y = gpu.zeros::<f32>(rows as usize);
    let config = LaunchConfig::new(blocks(rows, nonzeros), BLOCK);
    gpu.launch(spmv_long_rows(), config, (a, x.read_only(), y.mutable()))?;
    gpu.expect("y", y, &matrix.times(&numbers))
}
