//! Kernels that are wrong on purpose, and what the emulator says about each.

use crate::emulator_only;
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::io::Write;
use warprow::{Device, launch};
use warprow_book_kernels::faults::{
    BLOCK, add_to_nothing, add_without_atomics, barrier_for_some, copy_without_wait,
    shuffle_for_some, unaligned_load, wait_for_nobody,
};

/// A fault.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// What is wrong
    #[arg(value_enum)]
    pub fault: Fault,
}

/// What is wrong with a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Fault {
    /// It reads what nobody has written
    AddToNothing,
    /// All threads add to one element without an atomic operation
    AddWithoutAtomics,
    /// The second warp does not reach the barrier
    BarrierForSome,
    /// Half of the lanes do not reach the shuffle
    ShuffleForSome,
    /// A load of 16 bytes is not aligned
    UnalignedLoad,
    /// It does not wait for an asynchronous copy
    CopyWithoutWait,
    /// It waits for a flag that nobody sets
    WaitForNobody,
}

/// Launches the kernel.
///
/// # Errors
///
/// The kernel's fault.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<()> {
    emulator_only(device)?;
    let x = device.upload(&[1.0_f32; BLOCK as usize])?;
    let mut y = device.uninitialized::<f32>(BLOCK as usize)?;
    let kernel = match options.fault {
        Fault::AddToNothing => add_to_nothing(),
        Fault::AddWithoutAtomics => add_without_atomics(),
        Fault::BarrierForSome => barrier_for_some(),
        Fault::ShuffleForSome => shuffle_for_some(),
        Fault::UnalignedLoad => unaligned_load(),
        Fault::CopyWithoutWait => copy_without_wait(),
        Fault::WaitForNobody => wait_for_nobody(),
    };
    // SAFETY: not upheld, on purpose: the emulator answers with a fault.
    unsafe { launch!(device, kernel<<<1, BLOCK, 0>>>(x.read_only(), y.mutable()))? };
    writeln!(out, "the emulator has found nothing")?;
    Ok(())
}
