//! A sparse matrix times itself, by the rungs of the SpGEMM ladder and by what runs by default.

use crate::counters::{self, LOAD_SECTORS, LONGEST_WARP, RESIDENT_WARPS};
use crate::counters::{BLOCKS, SHARED_BYTES, SHARED_WAVEFRONTS};
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use std::io::Write;
use warprow::generate::rmat;
use warprow::reference::{verify_spgemm, whole_matrix};
use warprow::spgemm::{SpgemmKernel, SpgemmOptions, multiply, multiply_unsorted};
use warprow::{CsrMatrix, Device, DeviceCsr};

/// A product by one or several kernels.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Rungs of the ladder, or what runs by default
    #[arg(required = true, value_enum, value_name = "RUNG")]
    pub rungs: Vec<Rung>,

    /// Rows of a generated graph with six nonzeros a row, a few rows with hundreds
    #[arg(long, default_value_t = 1000)]
    pub rows: u32,
}

/// A rung of the ladder, or what runs by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Rung {
    /// Tables of 2048 slots
    FixedTable,
    /// Tables of all shared memory of a block
    DynamicTable,
    /// Tables as small as the row allows
    FittedTable,
    /// Long rows' tables in device memory
    SplitTable,
    /// What runs by default
    Default,
}

impl Rung {
    fn kernel(self) -> Option<SpgemmKernel> {
        match self {
            Self::FixedTable => Some(SpgemmKernel::FixedTable),
            Self::DynamicTable => Some(SpgemmKernel::DynamicTable),
            Self::FittedTable => Some(SpgemmKernel::FittedTable),
            Self::SplitTable => Some(SpgemmKernel::SplitTable),
            Self::Default => None,
        }
    }
}

/// Multiplies by each rung, compares the products with the host's, and prints the counters of all launches.
///
/// # Errors
///
/// A row that is too long for a rung, a fault, a wrong result, or an error of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<()> {
    let graph = rmat::<f32>(options.rows, 6 * options.rows, [0.57, 0.19, 0.19, 0.05], 1)?;
    let a: CsrMatrix<f32> = whole_matrix(graph.view(), 1);
    let there = DeviceCsr::upload(device, a.view())?;
    let columns = [
        BLOCKS,
        SHARED_BYTES,
        RESIDENT_WARPS,
        LOAD_SECTORS,
        SHARED_WAVEFRONTS,
        LONGEST_WARP,
    ];
    for &rung in &options.rungs {
        drop(device.launch_reports());
        let c = match rung.kernel() {
            Some(kernel) => multiply_unsorted(kernel, &there, &there)?.download_sorted()?,
            None => multiply(&there, &there, SpgemmOptions::default())?
                .c
                .download()?,
        };
        let mut reports = device.launch_reports().unwrap_or_default();
        // The kernels of the product, without those that number, list and sum up.
        reports.retain(|report| report.kernel.starts_with("spgemm"));
        if !reports.is_empty() {
            counters::print(out, &columns, &reports)?;
        }
        let verification = verify_spgemm(a.view(), a.view(), c.view());
        ensure!(verification.ok(), "wrong product: {verification:?}");
        let (nonzeros, entries) = (a.nnz(), c.nnz());
        writeln!(out, "product  {nonzeros} nonzeros, {entries} entries of C")?;
    }
    Ok(())
}
