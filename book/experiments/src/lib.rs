//! The experiments of the book: each launches one of its kernels, prints what happened, and checks the result.
//!
//! `cargo run --release --example book -- EXPERIMENT` runs one. A wrong result is an error.

pub mod axpy;
pub mod hello;

use anyhow::{Result, ensure};
use clap::Subcommand;
use std::io::Write;
use warprow::Device;

/// An experiment and its options.
#[derive(Clone, Debug, Subcommand)]
pub enum Experiment {
    /// Chapter 1: which block, warp and lane each thread is
    Hello(hello::Options),
    /// Chapter 1: y += a x, with and without the guard for threads past the end
    Axpy(axpy::Options),
}

/// Refuses a kernel that breaks its contract on a GPU, where it could destroy what other buffers hold.
fn emulator_only(device: &Device) -> Result<()> {
    ensure!(
        device.is_emulator(),
        "this kernel is wrong on purpose and runs on the emulator alone: WARPROW_DEVICE=emulator"
    );
    Ok(())
}

/// Loads the book's kernels, which are not the library's, into a device that may be a GPU.
///
/// # Errors
///
/// The device's.
#[cfg_attr(
    not(target_os = "linux"),
    expect(unused_variables, reason = "GPUs need Linux")
)]
pub fn load_kernels(device: &Device) -> Result<()> {
    #[cfg(target_os = "linux")]
    device.load_kernels(warprow_book_kernels::PTX)?;
    Ok(())
}

impl Experiment {
    /// Runs the experiment on a device, and prints its results to `out`.
    ///
    /// # Errors
    ///
    /// A fault of the kernel, a wrong result, or an error of `out`.
    pub fn run(&self, device: &Device, out: &mut dyn Write) -> Result<()> {
        match self {
            Self::Hello(options) => hello::run(options, device, out),
            Self::Axpy(options) => axpy::run(options, device, out),
        }
    }
}
