//! A sparse matrix: the lengths of its rows, and its product with a vector.

use crate::measure::{Measurement, cost};
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;
use warprow::generate::rmat;
use warprow::matrix_market::{parse_matrix_market, read_matrix_market};
use warprow::{CsrMatrix, Device, launch};
use warprow_book_kernels::spmv::{Csr, spmv_thread_per_row, spmv_warp_per_row};

/// A matrix.
#[derive(Args, Clone, Debug, Default)]
pub struct Matrix {
    /// A Matrix Market file, .mtx or .mtx.gz; or `hubs`, a generated graph whose first rows have most of the nonzeros
    /// [default: the dependencies of Debian's packages]
    #[arg(long, value_name = "FILE|hubs")]
    pub matrix: Option<PathBuf>,
}

/// A graph of 5,000 nodes and 50,000 edges, whose first rows and columns have most of the nonzeros.
pub(crate) fn hubs() -> Result<CsrMatrix<f32>> {
    Ok(rmat(5000, 50_000, [0.57, 0.19, 0.19, 0.05], 1)?)
}

impl Matrix {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// A file that is no matrix.
    pub fn read(&self) -> Result<CsrMatrix<f32>> {
        Ok(match &self.matrix {
            Some(path) if path.as_os_str() == "hubs" => hubs()?,
            Some(path) => read_matrix_market(path)?,
            None => parse_matrix_market(
                &include_bytes!("../data/debian-bookworm-depends.mtx.gz")[..],
                "data/debian-bookworm-depends.mtx.gz",
            )?,
        })
    }

    /// Prints how many rows have how many nonzeros.
    ///
    /// # Errors
    ///
    /// A file that is no matrix, or an error of `out`.
    pub fn rows(&self, out: &mut dyn Write) -> Result<()> {
        let a = self.read()?;
        let lengths: Vec<usize> = a.outer_iterator().map(|row| row.nnz()).collect();
        writeln!(
            out,
            "{} rows, {} columns, {} nonzeros",
            a.rows(),
            a.cols(),
            a.nnz()
        )?;
        writeln!(out, "{:>12}{:>8}{:>10}", "length", "rows", "nonzeros")?;
        let (mut least, mut below) = (0, 1);
        let longest = lengths.iter().copied().max().unwrap_or(0);
        while least <= longest {
            let these = lengths
                .iter()
                .filter(|&&length| (least..below).contains(&length));
            let (rows, nonzeros) = these.fold((0, 0), |(rows, nonzeros), length| {
                (rows + 1, nonzeros + length)
            });
            let range = if below - least == 1 {
                format!("{least}")
            } else {
                format!("{least} to {}", below - 1)
            };
            writeln!(out, "{range:>12}{rows:>8}{nonzeros:>10}")?;
            (least, below) = (below, 2 * below);
        }
        Ok(())
    }
}

/// A product with a vector.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The matrix
    #[command(flatten)]
    pub matrix: Matrix,

    /// What computes a row
    #[arg(long, value_enum, default_value_t = Kernel::Thread)]
    pub row_by: Kernel,
}

/// What computes a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// A thread
    Thread,
    /// A warp
    Warp,
}

/// Threads of a block.
const BLOCK: u32 = 128;

/// Multiplies, and compares the product with the host's.
///
/// # Errors
///
/// A file that is no matrix, a fault of the kernel, a wrong result, or an error of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<Option<Measurement>> {
    let a = options.matrix.read()?;
    let rows = u32::try_from(a.rows())?;
    // Values from 1 to 8, so that sums of some thousand products are exact.
    let values: Vec<f32> = (0..a.nnz()).map(|k| (k % 8 + 1) as f32).collect();
    let x_host: Vec<f32> = (0..a.cols()).map(|col| (col % 9) as f32 - 4.0).collect();
    let row_ptr = device.upload(a.indptr().raw_storage())?;
    let (col_idx, values_there) = (device.upload(a.indices())?, device.upload(&values)?);
    let x = device.upload(&x_host)?;
    let mut y = device.uninitialized::<f32>(a.rows())?;
    let there = Csr {
        rows,
        row_ptr: row_ptr.read_only(),
        col_idx: col_idx.read_only(),
        values: values_there.read_only(),
    };
    let mut multiply = || -> Result<()> {
        let (by_thread, by_warp) = (spmv_thread_per_row(), spmv_warp_per_row());
        let (x, y) = (x.read_only(), y.mutable());
        // SAFETY: the arrays are those of a matrix; x has an element for each column, y for each row.
        unsafe {
            match options.row_by {
                Kernel::Thread => {
                    launch!(device, by_thread<<<rows.div_ceil(BLOCK), BLOCK, 0>>>(there, x, y))?
                }
                Kernel::Warp => {
                    launch!(device, by_warp<<<rows.div_ceil(BLOCK / 32), BLOCK, 0>>>(there, x, y))?
                }
            }
        }
        Ok(())
    };
    multiply()?;
    let case = format!("spmv, row by {:?}", options.row_by).to_lowercase();
    let bytes = 8 * a.nnz() as u64 + 4 * (2 * a.rows() + a.cols() + 1) as u64;
    let measured = cost(device, case, bytes, out, multiply)?;
    for (row, (found, ends)) in y
        .download()?
        .iter()
        .zip(a.indptr().raw_storage().windows(2))
        .enumerate()
    {
        let wanted: f32 = (ends[0] as usize..ends[1] as usize)
            .map(|k| values[k] * x_host[a.indices()[k] as usize])
            .sum();
        ensure!(*found == wanted, "y[{row}]: wanted {wanted}, found {found}");
    }
    Ok(measured)
}
