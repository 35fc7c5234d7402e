//! The positive elements of an array.

use super::attempt::keep_positive;
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 128;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let numbers: Vec<i32> = (0..u64::from(n))
        .map(|index| (inputs::hash(index) % 2001) as i32 - 1000)
        .collect();
    let mut wanted: Vec<i32> = numbers.iter().copied().filter(|&it| it > 0).collect();
    let x = gpu.upload(&numbers);
    let out = gpu.output::<i32>(wanted.len());
    let count = gpu.zeros::<u32>(1);
    let config = LaunchConfig::new(n.div_ceil(BLOCK), BLOCK);
    let arguments = (n, x.read_only(), out.mutable(), count.mutable());
    gpu.launch(keep_positive(), config, arguments)?;
    gpu.expect("count", count, &[wanted.len() as u32])?;
    let mut found = gpu.download("out", out)?;
    found.sort_unstable();
    wanted.sort_unstable();
    expect_equal("sorted out", &found, &wanted)
}
