//! A sum of many elements, with fewer and fewer atomic additions.

use crate::measure::{Measurement, cost};
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use std::io::Write;
use warprow::{Device, launch};
use warprow_book_kernels::sums::{BLOCK, sum_by_blocks, sum_by_threads, sum_by_warps};

/// The elements and the kernel.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Elements to add
    #[arg(long, default_value_t = 1 << 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub elements: u32,

    /// Who adds to the total
    #[arg(long, value_enum, default_value_t = Kernel::Threads)]
    pub by: Kernel,
}

/// Who adds to the total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// Each thread
    Threads,
    /// Each warp
    Warps,
    /// Each block of a grid of at most 1056 blocks
    Blocks,
}

/// Blocks of the last kernel, at most: 8 for each of the 132 multiprocessors of an H200, as many as they can hold.
const BLOCKS: u32 = 8 * 132;

/// Adds, and compares the total with the host's.
///
/// # Errors
///
/// A fault of the kernel, a wrong result, or an error of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<Option<Measurement>> {
    let Options { elements: n, by } = *options;
    let host: Vec<u32> = (0..n).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let x = device.upload(&host)?;
    let mut total = device.zeros::<u32>(1)?;
    let mut add = || -> Result<()> {
        let (blocks, few) = (n.div_ceil(BLOCK), n.div_ceil(BLOCK).min(BLOCKS));
        let (by_threads, by_warps, by_blocks) = (sum_by_threads(), sum_by_warps(), sum_by_blocks());
        let x = x.read_only();
        total.fill_zero()?;
        // SAFETY: the buffer holds `n` elements, and blocks have 256 threads.
        unsafe {
            match by {
                Kernel::Threads => {
                    launch!(device, by_threads<<<blocks, BLOCK, 0>>>(n, x, total.mutable()))?
                }
                Kernel::Warps => {
                    launch!(device, by_warps<<<blocks, BLOCK, 0>>>(n, x, total.mutable()))?
                }
                Kernel::Blocks => {
                    launch!(device, by_blocks<<<few, BLOCK, 0>>>(n, x, total.mutable()))?
                }
            }
        }
        Ok(())
    };
    add()?;
    let case = format!("sum by {by:?}").to_lowercase();
    let measured = cost(device, case, 4 * u64::from(n), out, add)?;
    let wanted = host.iter().fold(0_u32, |sum, &x| sum.wrapping_add(x));
    let found = total.download()?[0];
    ensure!(found == wanted, "wanted {wanted}, found {found}");
    Ok(measured)
}
