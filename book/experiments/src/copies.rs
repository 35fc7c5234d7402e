//! Copies whose lanes read neighbours, or elements that are far apart.

use crate::measure::{Measurement, cost};
use anyhow::{Result, ensure};
use clap::Args;
use std::io::Write;
use warprow::{Device, launch};
use warprow_book_kernels::copies::{copy_by_four, copy_strided};

/// The copy.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Elements to copy
    #[arg(long, default_value_t = 1 << 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub elements: u32,

    /// Elements from one that is read to the next one
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub stride: u32,

    /// Each thread copies four neighbours at once
    #[arg(long, conflicts_with = "stride")]
    pub by_four: bool,
}

/// Threads of a block.
const BLOCK: u32 = 128;

/// Copies, and compares the copy with its original.
///
/// # Errors
///
/// A fault of the kernel, a wrong result, or an error of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<Option<Measurement>> {
    let Options {
        elements: n,
        stride,
        by_four,
    } = *options;
    ensure!(
        !by_four || n % 4 == 0,
        "wanted a multiple of four elements, found {n}"
    );
    let x_host: Vec<f32> = (0..n as usize * stride as usize)
        .map(|i| (i % 65536) as f32)
        .collect();
    let x = device.upload(&x_host)?;
    let mut y = device.uninitialized::<f32>(n as usize)?;
    let mut copy = || -> Result<()> {
        let (strided, by_fours) = (copy_strided(), copy_by_four());
        // SAFETY: y holds `n` elements, x holds `n * stride`; where the stride does not count, it is 1.
        unsafe {
            if by_four {
                let blocks = (n / 4).div_ceil(BLOCK);
                launch!(device, by_fours<<<blocks, BLOCK, 0>>>(n, x.read_only(), y.mutable()))?;
            } else {
                let blocks = n.div_ceil(BLOCK);
                launch!(device, strided<<<blocks, BLOCK, 0>>>(n, stride, x.read_only(), y.mutable()))?;
            }
        }
        Ok(())
    };
    copy()?;
    let case = if by_four {
        "copy_by_four".to_owned()
    } else {
        format!("copy_strided, stride {stride}")
    };
    let measured = cost(device, case, 8 * u64::from(n), out, copy)?;
    for (i, y) in y.download()?.into_iter().enumerate() {
        let wanted = x_host[i * stride as usize];
        ensure!(y == wanted, "y[{i}]: wanted {wanted}, found {y}");
    }
    Ok(measured)
}
