//! A sparse matrix times a sparse matrix.

use super::attempt::{Csr, Product, spgemm};
use exercises::prelude::*;

/// Threads of a block, and rows that it computes: one warp for each.
const BLOCK: (u32, u32) = (64, 2);

/// One run with a matrix of `rows` rows.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    let (a, b) = inputs::factors(rows);
    let wanted = a.product(&b);
    let upload = |matrix: &inputs::Csr| Csr {
        rows: matrix.rows() as u32,
        row_ptr: gpu.upload(&matrix.row_ptr).read_only(),
        col_idx: gpu.upload(&matrix.col_idx).read_only(),
        values: gpu.upload(&matrix.values).read_only(),
    };
    let col_idx = gpu.output::<u32>(wanted.col_idx.len());
    let values = gpu.output::<f32>(wanted.values.len());
    let c = Product {
        row_ptr: gpu.upload(&wanted.row_ptr).read_only(),
        col_idx: col_idx.mutable(),
        values: values.mutable(),
    };
    let config = LaunchConfig::new(rows.div_ceil(BLOCK.1), BLOCK.0);
    gpu.launch(spgemm(), config, (upload(&a), upload(&b), c))?;
    gpu.expect("c.col_idx", col_idx, &wanted.col_idx)?;
    gpu.expect("c.values", values, &wanted.values)
}
