//! A sparse matrix in CSR times a vector.

use super::attempt::{Csr, spmv};
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 128;

/// One run with a matrix of `rows` rows.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    let matrix = inputs::Csr::typical(rows, rows + 130);
    let numbers = inputs::floats(matrix.cols as usize);
    let a = Csr {
        rows,
        row_ptr: gpu.upload(&matrix.row_ptr).read_only(),
        col_idx: gpu.upload(&matrix.col_idx).read_only(),
        values: gpu.upload(&matrix.values).read_only(),
    };
    let x = gpu.upload(&numbers);
    let y = gpu.output::<f32>(rows as usize);
    let config = LaunchConfig::new(rows.div_ceil(BLOCK), BLOCK);
    gpu.launch(spmv(), config, (a, x.read_only(), y.mutable()))?;
    gpu.expect("y", y, &matrix.times(&numbers))
}
