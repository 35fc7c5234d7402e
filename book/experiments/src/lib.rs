//! The experiments of the book: each launches one of its kernels, prints what happened, and checks the result.
//!
//! `cargo run --release --example book -- EXPERIMENT` runs one. A wrong result is an error.

pub mod axpy;
pub mod copies;
pub mod counters;
pub mod faults;
pub mod hello;
pub mod measure;
pub mod parts;
pub mod plans;
pub mod scans;
pub mod spgemm;
pub mod spmm;
pub mod spmv;
pub mod sums;
pub mod together;
pub mod transpose;
pub mod xw;

use anyhow::{Result, ensure};
use clap::Subcommand;
use measure::Measurement;
use std::io::Write;
use warprow::Device;

/// An experiment and its options.
#[derive(Clone, Debug, Subcommand)]
pub enum Experiment {
    /// Chapter 1: which block, warp and lane each thread is
    Hello(hello::Options),
    /// Chapter 1: y += a x, with and without the guard for threads past the end
    Axpy(axpy::Options),
    /// Chapter 2: a copy, of neighbours or of elements that are far apart
    Copy(copies::Options),
    /// Chapters 2 and 3: a matrix, transposed directly or through shared memory
    Transpose(transpose::Options),
    /// Chapter 3: groups of elements, reversed through shared memory, with and without a barrier
    Reverse(together::Reverse),
    /// Chapter 3: differences of neighbours, by a shuffle
    Differences(together::Differences),
    /// Chapter 3: elements that are kept, by atomic additions and votes
    Keep(together::Keep),
    /// Chapter 3: a message from one block to another, with and without fences
    Message(together::Message),
    /// Chapter 4: a sum, with fewer and fewer atomic additions
    Sum(sums::Options),
    /// Chapter 4: all sums from the first element on, in a single pass
    Scan(scans::Options),
    /// Chapter 5: how long the rows of a sparse matrix are
    Rows(spmv::Matrix),
    /// Chapter 5: a sparse matrix times a vector
    Spmv(spmv::Options),
    /// Chapter 6: a sparse matrix times a dense one, by kernels of the ladder
    Spmm(spmm::Options),
    /// Chapter 7: what the plan of a product decides
    Plan(plans::Options),
    /// Chapter 8: a tall dense matrix times a small one, by kernels of the ladder
    Xw(xw::Options),
    /// Chapter 9: a sparse matrix times itself, by rungs of the ladder
    Spgemm(spgemm::Options),
    /// Chapter 11: kernels that are wrong on purpose
    Fault(faults::Options),
    /// Chapter 13: a sparse matrix times a dense one, over several devices
    Parts(parts::Options),
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
    /// Runs the experiment on a device, and prints its results to `out`. On a GPU, returns how long its kernel takes,
    /// if that says something.
    ///
    /// # Errors
    ///
    /// A fault of the kernel, a wrong result, or an error of `out`.
    pub fn run(&self, device: &Device, out: &mut dyn Write) -> Result<Option<Measurement>> {
        let no_measurement = |()| None;
        match self {
            Self::Hello(options) => hello::run(options, device, out).map(no_measurement),
            Self::Axpy(options) => axpy::run(options, device, out).map(no_measurement),
            Self::Copy(options) => copies::run(options, device, out),
            Self::Transpose(options) => transpose::run(options, device, out),
            Self::Reverse(reverse) => reverse.run(device, out).map(no_measurement),
            Self::Differences(differences) => differences.run(device, out),
            Self::Keep(keep) => keep.run(device, out),
            Self::Message(message) => message.run(device, out).map(no_measurement),
            Self::Sum(options) => sums::run(options, device, out),
            Self::Scan(options) => scans::run(options, device, out),
            Self::Rows(matrix) => matrix.rows(out).map(no_measurement),
            Self::Spmv(options) => spmv::run(options, device, out),
            Self::Spmm(options) => spmm::run(options, device, out),
            Self::Fault(options) => faults::run(options, device, out).map(no_measurement),
            Self::Xw(options) => xw::run(options, device, out),
            Self::Spgemm(options) => spgemm::run(options, device, out).map(no_measurement),
            Self::Plan(options) => plans::run(options, device, out).map(no_measurement),
            Self::Parts(options) => parts::run(options, device, out).map(no_measurement),
        }
    }
}
