//! `y += a x`, with and without the guard for threads past the end.

use anyhow::{Result, ensure};
use clap::Args;
use std::io::Write;

use crate::emulator_only;
use warprow::device::DeviceBuffer;
use warprow::{Device, launch};
use warprow_book_kernels::hello::{axpy, axpy_without_guard};

/// The size of the launch, and the kernel.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Elements of x and y
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub elements: u32,

    /// Take the kernel that does not compare its index with the number of elements
    #[arg(long)]
    pub without_guard: bool,
}

/// Threads of a block.
const BLOCK: u32 = 128;

/// Adds `a * x` to `y` on the device.
fn add(device: &Device, a: f32, x: &DeviceBuffer<f32>, y: &mut DeviceBuffer<f32>) -> Result<()> {
    let n = u32::try_from(y.len())?;
    ensure!(x.len() == y.len(), "x has {} elements, y has {n}", x.len());
    let blocks = n.div_ceil(BLOCK);
    let kernel = axpy::<f32>();
    // SAFETY: both buffers hold `n` elements.
    unsafe { launch!(device, kernel<<<blocks, BLOCK, 0>>>(n, a, x.read_only(), y.mutable()))? };
    Ok(())
}

/// [`add`] by the kernel that has no guard.
fn add_without_guard(
    device: &Device,
    a: f32,
    x: &DeviceBuffer<f32>,
    y: &mut DeviceBuffer<f32>,
) -> Result<()> {
    emulator_only(device)?;
    let blocks = u32::try_from(y.len())?.div_ceil(BLOCK);
    let kernel = axpy_without_guard::<f32>();
    // SAFETY: not upheld for the last threads of the last block, on purpose: the emulator answers with a fault.
    unsafe { launch!(device, kernel<<<blocks, BLOCK, 0>>>(a, x.read_only(), y.mutable()))? };
    Ok(())
}

/// Adds 2 x to y, and compares y with the sum that the host computes.
///
/// # Errors
///
/// A fault of the kernel, a wrong result, or an error of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<()> {
    let n = options.elements;
    let x_host: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let x = device.upload(&x_host)?;
    let mut y = device.upload(&vec![1.0_f32; n as usize])?;
    let blocks = n.div_ceil(BLOCK);
    writeln!(
        out,
        "launch   {blocks} blocks of {BLOCK} threads, {n} elements"
    )?;
    if options.without_guard {
        add_without_guard(device, 2.0, &x, &mut y)?;
    } else {
        add(device, 2.0, &x, &mut y)?;
    }
    for (i, (&y, &x)) in y.download()?.iter().zip(&x_host).enumerate() {
        let wanted = 2.0 * x + 1.0;
        ensure!(y == wanted, "y[{i}]: wanted {wanted}, found {y}");
    }
    writeln!(
        out,
        "result   right: y[i] = 2 x[i] + 1 for all {n} elements"
    )?;
    Ok(())
}
