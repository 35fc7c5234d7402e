//! Merges two sorted lists.

use super::attempt::merge;
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 128;

/// One run with a list of `n` columns, and one of half as many.
pub fn run(gpu: &Gpu, n: u32) -> Result<(), Failure> {
    // Sorted, each at most once in a list; some are in both.
    let list = |length: u32, step: u32| -> Vec<u32> {
        let rise = |i: u32| step * i + (inputs::hash(i.into()) % u64::from(step)) as u32;
        (0..length).map(rise).collect()
    };
    let (a, b) = (list(n, 3), list(n / 2, 5));
    let mut wanted = [&*a, &*b].concat();
    wanted.sort_unstable();
    let (of_a, of_b) = (gpu.upload(&a), gpu.upload(&b));
    let c = gpu.output::<u32>(wanted.len());
    let config = LaunchConfig::new((wanted.len() as u32).div_ceil(BLOCK), BLOCK);
    let arguments = (
        a.len() as u32,
        b.len() as u32,
        of_a.read_only(),
        of_b.read_only(),
        c.mutable(),
    );
    gpu.launch(merge(), config, arguments)?;
    gpu.expect("c", c, &wanted)
}
