//! Swaps of rows, in any order.

use super::attempt::swap_rows;
use exercises::prelude::*;

/// Warps of a block.
const WARPS: u32 = 4;

/// Rows of the matrix.
const ROWS: u32 = 7;

/// Columns of the matrix.
const COLS: usize = 32;

/// One run with `n` swaps.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let first = inputs::numbers(n as usize, ROWS);
    let distances = inputs::numbers(2 * n as usize, ROWS - 1).split_off(n as usize);
    let pairs = first.iter().zip(distances);
    let second: Vec<u32> = pairs.map(|(row, far)| (row + 1 + far) % ROWS).collect();
    let numbers: Vec<u32> = (0..ROWS * COLS as u32).collect();
    let x = gpu.upload(&numbers);
    let (from, to) = (gpu.upload(&first), gpu.upload(&second));
    let locks = gpu.zeros::<u32>(ROWS as usize);
    let config = LaunchConfig::new(n.div_ceil(WARPS), 32 * WARPS);
    let arguments = (
        n,
        from.read_only(),
        to.read_only(),
        locks.mutable(),
        x.mutable(),
    );
    gpu.launch(swap_rows(), config, arguments)?;
    let found = gpu.download("x", x)?;
    // The order of the swaps is free. So each column is sorted before the comparison.
    let mut sorted = found.clone();
    for col in 0..COLS {
        let mut column: Vec<u32> = found.iter().skip(col).step_by(COLS).copied().collect();
        column.sort_unstable();
        for (row, number) in column.into_iter().enumerate() {
            sorted[row * COLS + col] = number;
        }
    }
    expect_equal("sorted x", &sorted, &numbers)
}
