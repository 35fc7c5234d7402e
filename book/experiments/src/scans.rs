//! A scan in a single pass.

use crate::emulator_only;
use crate::measure::{Measurement, cost};
use anyhow::{Result, ensure};
use clap::Args;
use std::io::Write;
use warprow::{Device, launch};
use warprow_book_kernels::scan::{TILE, scan};

/// The elements and the kernel.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Elements to add
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub elements: u32,

    /// Blocks take the tile of their own index, in place of a ticket
    #[arg(long)]
    pub without_tickets: bool,
}

/// Scans, and compares each sum with the host's.
///
/// # Errors
///
/// A fault of the kernel, a wrong result, or an error of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<Option<Measurement>> {
    let Options {
        elements: n,
        without_tickets,
    } = *options;
    let host: Vec<u32> = (0..n).map(|i| i % 10).collect();
    let tiles = n.div_ceil(TILE);
    let x = device.upload(&host)?;
    let mut y = device.uninitialized::<u32>(n as usize)?;
    let mut states = device.zeros::<u64>(tiles as usize)?;
    let mut tickets = device.zeros::<u32>(1)?;
    let mut add = || -> Result<()> {
        states.fill_zero()?;
        tickets.fill_zero()?;
        let (right, wrong) = (scan::<1>(), scan::<0>());
        let (x, y, states, tickets) = (
            x.read_only(),
            y.mutable(),
            states.mutable(),
            tickets.mutable(),
        );
        // SAFETY: the buffers hold `n` elements, a zero for each tile, and a zero; blocks have 256 threads. The kernel
        // without tickets runs on the emulator alone, which reports blocks that wait for ever.
        unsafe {
            if without_tickets {
                emulator_only(device)?;
                launch!(device, wrong<<<tiles, TILE, 0>>>(n, x, y, states, tickets))?;
            } else {
                launch!(device, right<<<tiles, TILE, 0>>>(n, x, y, states, tickets))?;
            }
        }
        Ok(())
    };
    add()?;
    let measured = cost(device, "scan".to_owned(), 8 * u64::from(n), out, add)?;
    let mut wanted = 0_u32;
    for (i, (found, x)) in y.download()?.into_iter().zip(host).enumerate() {
        wanted = wanted.wrapping_add(x);
        ensure!(found == wanted, "y[{i}]: wanted {wanted}, found {found}");
    }
    writeln!(out, "result   right: {n} sums in {tiles} tiles")?;
    Ok(measured)
}
