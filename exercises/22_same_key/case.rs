//! A histogram of numbers less than 12.

use super::attempt::count;
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 128;

/// Number of different numbers.
const NUMBERS: usize = 12;

/// One run with `n` elements.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    let numbers = inputs::numbers(n as usize, NUMBERS as u32);
    let x = gpu.upload(&numbers);
    let counts = gpu.zeros::<u32>(NUMBERS);
    let config = LaunchConfig::new(n.div_ceil(BLOCK), BLOCK);
    gpu.launch(count(), config, (n, x.read_only(), counts.mutable()))?;
    let mut wanted = [0; NUMBERS];
    for number in numbers {
        wanted[number as usize] += 1;
    }
    gpu.expect("counts", counts, &wanted)
}
