//! Which block, warp and lane each thread of a launch is.

use anyhow::{Result, ensure};
use clap::Args;
use std::io::Write;
use warprow::{Device, launch};
use warprow_book_kernels::hello::hello;

/// The size of the launch.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Elements, each for one thread
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub elements: u32,

    /// Threads of a block
    #[arg(long, default_value_t = 48, value_parser = clap::value_parser!(u32).range(1..))]
    pub block: u32,
}

/// Prints a line for each warp.
///
/// # Errors
///
/// A block that the device does not run, a wrong result, or an error of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<()> {
    let Options { elements, block } = *options;
    let blocks = elements.div_ceil(block);
    let length = elements as usize;
    let mut block_of = device.uninitialized::<u32>(length)?;
    let mut warp_of = device.uninitialized::<u32>(length)?;
    let mut lane_of = device.uninitialized::<u32>(length)?;
    let kernel = hello();
    // SAFETY: the three buffers hold `elements` elements each.
    unsafe {
        let (block_of, warp_of) = (block_of.mutable(), warp_of.mutable());
        launch!(device, kernel<<<blocks, block, 0>>>(elements, block_of, warp_of, lane_of.mutable()))?;
    }
    writeln!(
        out,
        "launch   {blocks} blocks of {block} threads, {elements} elements"
    )?;

    let (block_of, warp_of) = (block_of.download()?, warp_of.download()?);
    let lane_of = lane_of.download()?;
    let mut first = 0;
    while first < length {
        let warp = (block_of[first], warp_of[first]);
        let rest = (first..length).take_while(|&i| (block_of[i], warp_of[i]) == warp);
        let last = rest.last().unwrap_or(first);
        for i in first..=last {
            let thread = i as u32 % block;
            let found = (block_of[i], warp_of[i], lane_of[i]);
            let wanted = (i as u32 / block, thread / 32, thread % 32);
            ensure!(
                found == wanted,
                "element {i}: wanted {wanted:?}, found {found:?}"
            );
        }
        let (from, to) = (lane_of[first], lane_of[last]);
        writeln!(
            out,
            "block {}  warp {}  lanes {from:2} to {to:2}  elements {first:2} to {last:2}",
            warp.0, warp.1
        )?;
        first = last + 1;
    }
    Ok(())
}
