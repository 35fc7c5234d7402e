//! A tall dense matrix times a small one, by the kernels of the XW ladder.

use crate::counters::{self, LOAD_SECTORS, LOADS, SECTORS_PER_LOAD};
use crate::counters::{COPY_SECTORS, MATRIX_PRODUCTS, RESIDENT_WARPS, SHARED_WAVEFRONTS};
use crate::measure::{Measurement, cost};
use anyhow::{Context, Result, ensure};
use clap::Args;
use ndarray::Array2;
use std::io::Write;
use std::str::FromStr;
use warprow::{Device, Gemm, GemmKernel, GemmOptions, GemmTuning};

/// A product by one or several kernels.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Kernels of the ladder
    #[arg(required = true, value_name = "KERNEL")]
    pub kernels: Vec<Rung>,

    /// Rows of X
    #[arg(long, default_value_t = 2048)]
    pub rows: usize,

    /// Columns of X
    #[arg(long, default_value_t = 128)]
    pub depth: usize,

    /// Columns of W and Y
    #[arg(long, default_value_t = 16)]
    pub cols: usize,
}

/// A kernel, by its name.
#[derive(Clone, Copy, Debug)]
pub struct Rung(pub GemmKernel);

impl FromStr for Rung {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = GemmKernel::ALL.iter().find(|kernel| kernel.name() == name);
        found.map(|&kernel| Self(kernel)).ok_or_else(|| {
            let names: Vec<&str> = GemmKernel::ALL.iter().map(|kernel| kernel.name()).collect();
            format!("wanted one of {}", names.join(", "))
        })
    }
}

/// Multiplies by each kernel, compares the products with the host's, and prints the kernels' counters.
///
/// # Errors
///
/// A kernel that cannot compute the product, a fault, a wrong result, or an error of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<Option<Measurement>> {
    let &Options {
        rows, depth, cols, ..
    } = options;
    // Whole numbers so small that tf32 holds them and f32 their sums.
    let x = Array2::from_shape_fn((rows, depth), |(row, k)| ((row + 3 * k) % 7) as f32 - 3.0);
    let w = Array2::from_shape_fn((depth, cols), |(k, j)| ((2 * k + j) % 5) as f32 - 2.0);
    let wanted = x.dot(&w);
    let there = device.upload(x.as_slice().context("X is contiguous")?)?;
    let bytes = 4 * (rows * (depth + cols) + depth * cols) as u64;
    let mut measured = None;
    let mut reports = Vec::new();
    for &Rung(kernel) in &options.kernels {
        let gemm_options = GemmOptions::new()
            .tf32(true)
            .tuning(GemmTuning::new().kernel(kernel));
        let gemm = Gemm::plan(device, w.view(), None, gemm_options)?;
        let mut y = device.uninitialized::<f32>(rows * cols)?;
        drop(device.launch_reports());
        let mut multiply = || Ok(gemm.run(&there, rows, &mut y)?);
        multiply()?;
        if device.is_emulator() {
            reports.extend(device.launch_reports().unwrap_or_default());
        } else {
            writeln!(out, "kernel   {}", kernel.name())?;
            let case = format!("xw, {}", kernel.name());
            measured = cost(device, case, bytes, out, multiply)?;
        }
        let found = Array2::from_shape_vec((rows, cols), y.download()?)?;
        ensure!(found == wanted, "{}: wrong product", kernel.name());
    }
    if device.is_emulator() && !reports.is_empty() {
        let columns = [
            LOADS,
            SECTORS_PER_LOAD,
            LOAD_SECTORS,
            COPY_SECTORS,
            SHARED_WAVEFRONTS,
            MATRIX_PRODUCTS,
            RESIDENT_WARPS,
        ];
        counters::print(out, &columns, &reports)?;
    }
    Ok(measured)
}
