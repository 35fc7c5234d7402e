//! The halo of a part that owns the middle of X, and the new numbers of its nonzeros' columns.

use super::attempt::{mark, renumber};
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 128;

/// One run with `n` nonzeros. X has fewer rows than that, so some are selected twice.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let rows = n / 2 + 7;
    let (own_start, own_end) = (rows / 2, rows / 2 + rows / 4);
    let numbers = inputs::numbers(n as usize, rows);
    let is_own = |row: u32| (own_start..own_end).contains(&row);
    let mut wanted = vec![0; rows as usize];
    for &row in numbers.iter().filter(|&&row| !is_own(row)) {
        wanted[row as usize] = 1;
    }

    let columns = gpu.upload(&numbers);
    let needed = gpu.zeros::<u32>(rows as usize);
    let config = LaunchConfig::new(n.div_ceil(BLOCK), BLOCK);
    let arguments = (n, columns.read_only(), own_start, own_end, needed.mutable());
    gpu.launch(mark(), config, arguments)?;
    gpu.expect("needed", needed, &wanted)?;

    let (mut halo_before, mut halo) = (Vec::new(), 0);
    for &is_needed in &wanted {
        halo_before.push(halo);
        halo += is_needed;
    }
    let used = (0..rows).filter(|&row| is_own(row) || wanted[row as usize] == 1);
    let used: Vec<u32> = used.collect();
    let number = |row: &u32| used.partition_point(|other| other < row) as u32;
    let wanted: Vec<u32> = numbers.iter().map(number).collect();
    let halo_before = gpu.upload(&halo_before);
    let local = gpu.output::<u32>(n as usize);
    let arguments = (
        n,
        columns.read_only(),
        own_start,
        own_end,
        halo_before.read_only(),
        local.mutable(),
    );
    gpu.launch(renumber(), config, arguments)?;
    gpu.expect("local", local, &wanted)
}
