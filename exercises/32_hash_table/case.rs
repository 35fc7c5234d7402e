//! The numbers of different columns in groups of 128.

use super::attempt::count_distinct;
use exercises::prelude::*;
use std::collections::HashSet;

/// Columns of a group, and threads of a block.
const GROUP: usize = 128;

/// One run with `n` columns.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    // Columns that end alike share slots, the last ones of the table too.
    let columns: Vec<u32> = inputs::numbers(n as usize, 60)
        .into_iter()
        .map(|number| 256 * (number % 4) + 255 - number / 4)
        .collect();
    let wanted: Vec<u32> = columns
        .chunks(GROUP)
        .map(|group| group.iter().collect::<HashSet<_>>().len() as u32)
        .collect();
    let there = gpu.upload(&columns);
    let distinct = gpu.zeros::<u32>(wanted.len());
    let config = LaunchConfig::new(wanted.len() as u32, GROUP as u32);
    gpu.launch(
        count_distinct(),
        config,
        (n, there.read_only(), distinct.mutable()),
    )?;
    gpu.expect("distinct", distinct, &wanted)
}
