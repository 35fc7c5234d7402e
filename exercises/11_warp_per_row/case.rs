//! A sparse matrix in CSR times a vector, with a warp for each row.

use super::attempt::{Csr, spmv_by_warps};
use exercises::prelude::*;

/// Warps of a block, and rows that it computes.
const ROWS: u32 = 4;

/// One run with a matrix of `rows` rows, which have up to 99 nonzeros.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    let length = |row: u32| (inputs::hash(row.into()) % 100) as u32;
    let matrix = inputs::Csr::new(rows, rows + 200, length);
    let numbers = inputs::floats(matrix.cols as usize);
    let a = Csr {
        rows,
        row_ptr: gpu.upload(&matrix.row_ptr).read_only(),
        col_idx: gpu.upload(&matrix.col_idx).read_only(),
        values: gpu.upload(&matrix.values).read_only(),
    };
    let x = gpu.upload(&numbers);
    let y = gpu.output::<f32>(rows as usize);
    let config = LaunchConfig::new(rows.div_ceil(ROWS), 32 * ROWS);
    gpu.launch(spmv_by_warps(), config, (a, x.read_only(), y.mutable()))?;
    gpu.expect("y", y, &matrix.times(&numbers))
}
