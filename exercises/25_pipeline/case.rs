//! Reverses tiles of 64 elements.

use super::attempt::reverse;
use exercises::prelude::*;

/// Threads of a block, and elements of a tile.
const BLOCK: u32 = 64;

/// Number of blocks.
const BLOCKS: u32 = 3;

/// One run with `tiles` tiles for each block.
pub fn run(gpu: &Gpu, tiles: u32) -> Result<(), Failure> {
    let numbers = inputs::floats((BLOCKS * BLOCK * tiles) as usize);
    let x = gpu.upload(&numbers);
    let y = gpu.output::<f32>(numbers.len());
    let config = LaunchConfig::new(BLOCKS, BLOCK);
    gpu.launch(reverse(), config, (tiles, x.read_only(), y.mutable()))?;
    let reversed = |tile: &[f32]| tile.iter().rev().copied().collect::<Vec<_>>();
    let wanted: Vec<f32> = numbers.chunks(BLOCK as usize).flat_map(reversed).collect();
    gpu.expect("y", y, &wanted)
}
