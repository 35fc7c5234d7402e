//! The numbers of nonzeros of a sparse product's rows.

use super::attempt::{Structure, row_lengths};
use exercises::prelude::*;

/// Threads of a block, and rows that it computes: one warp for each.
const BLOCK: (u32, u32) = (64, 2);

/// One run with a matrix of `rows` rows.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    let (a, b) = inputs::factors(rows);
    let upload = |matrix: &inputs::Csr| Structure {
        rows: matrix.rows() as u32,
        row_ptr: gpu.upload(&matrix.row_ptr).read_only(),
        col_idx: gpu.upload(&matrix.col_idx).read_only(),
    };
    let lengths = gpu.output::<u32>(rows as usize);
    let config = LaunchConfig::new(rows.div_ceil(BLOCK.1), BLOCK.0);
    let arguments = (upload(&a), upload(&b), lengths.mutable());
    gpu.launch(row_lengths(), config, arguments)?;
    let c = a.product(&b);
    let wanted: Vec<u32> = c.row_ptr.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gpu.expect("lengths", lengths, &wanted)
}
