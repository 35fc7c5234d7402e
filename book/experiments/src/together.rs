//! Threads that work together: a barrier, a shuffle, a vote, fences.

use crate::emulator_only;
use crate::measure::{Measurement, cost};
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use std::io::Write;
use warprow::{Device, launch};
use warprow_book_kernels::together::{
    BLOCK, differences, keep_by_threads, keep_by_warps, pass_message, reverse,
};

/// Reversing groups of 128 elements.
#[derive(Args, Clone, Debug)]
pub struct Reverse {
    /// Groups of 128 elements, each for a block
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub groups: u32,

    /// Take the kernel that has no barrier
    #[arg(long)]
    pub without_barrier: bool,
}

impl Reverse {
    /// Reverses, and compares the groups with their originals.
    ///
    /// # Errors
    ///
    /// A fault of the kernel, a wrong result, or an error of `out`.
    pub fn run(&self, device: &Device, out: &mut dyn Write) -> Result<()> {
        let host: Vec<f32> = (0..self.groups * BLOCK).map(|i| i as f32).collect();
        let mut data = device.upload(&host)?;
        let (right, wrong) = (reverse::<1>(), reverse::<0>());
        let groups = self.groups;
        // SAFETY: there are 128 elements for each block. The wrong kernel runs on the emulator alone, which answers
        // with a fault.
        unsafe {
            if self.without_barrier {
                emulator_only(device)?;
                launch!(device, wrong<<<groups, BLOCK, 0>>>(data.mutable()))?;
            } else {
                launch!(device, right<<<groups, BLOCK, 0>>>(data.mutable()))?;
            }
        }
        let wanted: Vec<f32> = host
            .chunks(BLOCK as usize)
            .flat_map(|group| group.iter().rev().copied())
            .collect();
        ensure!(data.download()? == wanted, "a group is not reversed");
        writeln!(
            out,
            "result   right: {groups} groups of {BLOCK} elements are reversed"
        )?;
        Ok(())
    }
}

/// Differences of neighbours.
#[derive(Args, Clone, Debug)]
pub struct Differences {
    /// Elements
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub elements: u32,
}

impl Differences {
    /// Computes the differences, and compares them with the host's.
    ///
    /// # Errors
    ///
    /// A fault of the kernel, a wrong result, or an error of `out`.
    pub fn run(&self, device: &Device, out: &mut dyn Write) -> Result<Option<Measurement>> {
        let n = self.elements;
        let host: Vec<f32> = (0..n).map(|i| (i % 1000 * (i % 7)) as f32).collect();
        let x = device.upload(&host)?;
        let mut y = device.uninitialized::<f32>(n as usize)?;
        let kernel = differences();
        let mut subtract = || -> Result<()> {
            // SAFETY: both buffers hold `n` elements; blocks have four warps.
            unsafe {
                launch!(device, kernel<<<n.div_ceil(BLOCK), BLOCK, 0>>>(n, x.read_only(), y.mutable()))?
            };
            Ok(())
        };
        subtract()?;
        let measured = cost(
            device,
            "differences".to_owned(),
            8 * u64::from(n),
            out,
            subtract,
        )?;
        let y = y.download()?;
        for i in 0..n as usize {
            let wanted = if i == 0 {
                host[0]
            } else {
                host[i] - host[i - 1]
            };
            ensure!(y[i] == wanted, "y[{i}]: wanted {wanted}, found {}", y[i]);
        }
        Ok(measured)
    }
}

/// Keeping the elements that are not negative.
#[derive(Args, Clone, Debug)]
pub struct Keep {
    /// Elements
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub elements: u32,

    /// Who takes a number from the counter
    #[arg(long, value_enum, default_value_t = Counting::Threads)]
    pub by: Counting,
}

/// Who takes a number from the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Counting {
    /// Each thread that keeps its element
    Threads,
    /// Each warp, for all its lanes
    Warps,
}

impl Keep {
    /// Keeps elements, and compares them, sorted, with the host's.
    ///
    /// # Errors
    ///
    /// A fault of the kernel, a wrong result, or an error of `out`.
    pub fn run(&self, device: &Device, out: &mut dyn Write) -> Result<Option<Measurement>> {
        let Self { elements: n, by } = *self;
        // Three quarters are not negative, at irregular places.
        let sign = |i: u32| {
            if i.wrapping_mul(2_654_435_761) >> 30 == 0 {
                -1.0
            } else {
                1.0
            }
        };
        let host: Vec<f32> = (0..n).map(|i| sign(i) * (i + 1) as f32).collect();
        let x = device.upload(&host)?;
        let mut kept = device.uninitialized::<f32>(n as usize)?;
        let mut count = device.zeros::<u32>(1)?;
        let (by_threads, by_warps) = (keep_by_threads(), keep_by_warps());
        let mut keep = || -> Result<()> {
            let (x, kept, blocks) = (x.read_only(), kept.mutable(), n.div_ceil(BLOCK));
            count.fill_zero()?;
            // SAFETY: the buffers hold `n` elements, the counter is 0, and blocks have four warps.
            unsafe {
                match by {
                    Counting::Threads => {
                        launch!(device, by_threads<<<blocks, BLOCK, 0>>>(n, x, kept, count.mutable()))?
                    }
                    Counting::Warps => {
                        launch!(device, by_warps<<<blocks, BLOCK, 0>>>(n, x, kept, count.mutable()))?
                    }
                }
            }
            Ok(())
        };
        keep()?;
        let case = format!("keep by {by:?}").to_lowercase();
        let mut wanted: Vec<f32> = host.iter().copied().filter(|&x| x >= 0.0).collect();
        let bytes = 4 * (u64::from(n) + wanted.len() as u64);
        let measured = cost(device, case, bytes, out, keep)?;
        let count = count.download()?[0] as usize;
        ensure!(
            count == wanted.len(),
            "wanted {} elements, found {count}",
            wanted.len()
        );
        let mut found = vec![0.0; count];
        kept.copy_part_to_slice(0, &mut found)?;
        found.sort_by(f32::total_cmp);
        wanted.sort_by(f32::total_cmp);
        ensure!(found == wanted, "other elements are kept");
        Ok(measured)
    }
}

/// A message from one block to another.
#[derive(Args, Clone, Debug)]
pub struct Message {
    /// Take the kernel that has no fences
    #[arg(long)]
    pub without_fences: bool,
}

impl Message {
    /// Passes the message, and compares what was received.
    ///
    /// # Errors
    ///
    /// A fault of the kernel, a wrong result, or an error of `out`.
    pub fn run(&self, device: &Device, out: &mut dyn Write) -> Result<()> {
        let mut number = device.uninitialized::<u32>(1)?;
        let mut received = device.uninitialized::<u32>(1)?;
        let mut flag = device.zeros::<u32>(1)?;
        let (right, wrong) = (pass_message::<1>(), pass_message::<0>());
        let (number, flag, received_at) = (number.mutable(), flag.mutable(), received.mutable());
        // SAFETY: the buffers hold one element each, and the flag is 0. The wrong kernel runs on the emulator alone,
        // which answers with a fault.
        unsafe {
            if self.without_fences {
                emulator_only(device)?;
                launch!(device, wrong<<<2, 1, 0>>>(number, flag, received_at))?;
            } else {
                launch!(device, right<<<2, 1, 0>>>(number, flag, received_at))?;
            }
        }
        let received = received.download()?[0];
        ensure!(received == 42, "wanted 42, found {received}");
        writeln!(out, "result   right: block 1 received {received}")?;
        Ok(())
    }
}
