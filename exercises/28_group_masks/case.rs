//! A sparse matrix times a dense one with 8 columns, eight lanes for each row.

use super::attempt::{Csr, spmm_by_groups};
use exercises::prelude::*;

/// Columns of X and Y.
const FEATURES: usize = 8;

/// Threads of a block.
const BLOCK: u32 = 128;

/// One run with a matrix of `rows` rows.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    let matrix = inputs::Csr::new(rows, rows + 130, |row| {
        (inputs::hash(row.into()) % 60) as u32
    });
    let numbers = inputs::floats(matrix.cols as usize * FEATURES);
    let a = Csr {
        rows,
        row_ptr: gpu.upload(&matrix.row_ptr).read_only(),
        col_idx: gpu.upload(&matrix.col_idx).read_only(),
        values: gpu.upload(&matrix.values).read_only(),
    };
    let x = gpu.upload(&numbers);
    let y = gpu.output::<f32>(rows as usize * FEATURES);
    let config = LaunchConfig::new((8 * rows).div_ceil(BLOCK), BLOCK);
    gpu.launch(spmm_by_groups(), config, (a, x.read_only(), y.mutable()))?;
    gpu.expect("y", y, &matrix.times_rows(&numbers, FEATURES))
}
