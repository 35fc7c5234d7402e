//! The row in which each task of 32 nonzeros begins.

use super::attempt::task_rows;
use exercises::prelude::*;

/// Nonzeros of a task.
const TASK: usize = 32;

/// Threads of a block.
const BLOCK: u32 = 128;

/// One run with a matrix of `rows` rows.
pub fn run(gpu: &Gpu, rows: u32) -> Result<(), Failure> {
    let matrix = inputs::Csr::typical(rows, rows + 130);
    let wanted: Vec<u32> = matrix.row_idx().into_iter().step_by(TASK).collect();
    let tasks = wanted.len() as u32;
    let row_ptr = gpu.upload(&matrix.row_ptr);
    let first_row = gpu.output::<u32>(wanted.len());
    let config = LaunchConfig::new(tasks.div_ceil(BLOCK).max(1), BLOCK);
    let arguments = (rows, row_ptr.read_only(), tasks, first_row.mutable());
    gpu.launch(task_rows(), config, arguments)?;
    gpu.expect("first_row", first_row, &wanted)
}
