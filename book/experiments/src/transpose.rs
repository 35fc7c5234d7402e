//! Transposing a matrix: directly, and through tiles in shared memory.

use crate::measure::{Measurement, cost};
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use std::io::Write;
use warprow::{Device, launch};
use warprow_book_kernels::transpose::{ROWS_AT_ONCE, TILE, transpose_by_tiles, transpose_directly};

/// The matrix and the kernel.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Rows of the matrix
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=32768))]
    pub rows: u32,

    /// Columns of the matrix
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=32768))]
    pub cols: u32,

    /// The kernel
    #[arg(long, value_enum, default_value_t = Kernel::Directly)]
    pub kernel: Kernel,
}

/// The kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// Element by element
    Directly,
    /// Through tiles of 32 x 32 elements
    Tiles,
    /// Through tiles whose rows are 33 elements apart
    PaddedTiles,
}

/// Transposes, and compares the result with the matrix.
///
/// # Errors
///
/// A fault of the kernel, a wrong result, or an error of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<Option<Measurement>> {
    let Options { rows, cols, kernel } = *options;
    let length = rows as usize * cols as usize;
    let host: Vec<f32> = (0..length).map(|i| (i % 8_388_593) as f32).collect();
    let matrix = device.upload(&host)?;
    let mut transposed = device.uninitialized::<f32>(length)?;
    let mut transpose = || -> Result<()> {
        let (matrix, transposed) = (matrix.read_only(), transposed.mutable());
        let (across, block) = (cols.div_ceil(TILE), (TILE, ROWS_AT_ONCE));
        let directly = transpose_directly();
        let (tiles, padded) = (transpose_by_tiles::<0>(), transpose_by_tiles::<1>());
        // SAFETY: both matrices have `rows` x `cols` elements, and shared memory has room for a tile.
        unsafe {
            match kernel {
                Kernel::Directly => {
                    let grid = (across, rows.div_ceil(ROWS_AT_ONCE));
                    launch!(device, directly<<<grid, block, 0>>>(rows, cols, matrix, transposed))?;
                }
                Kernel::Tiles => {
                    let (grid, bytes) = ((across, rows.div_ceil(TILE)), 4 * TILE * TILE);
                    launch!(device, tiles<<<grid, block, bytes>>>(rows, cols, matrix, transposed))?;
                }
                Kernel::PaddedTiles => {
                    let (grid, bytes) = ((across, rows.div_ceil(TILE)), 4 * TILE * (TILE + 1));
                    launch!(device, padded<<<grid, block, bytes>>>(rows, cols, matrix, transposed))?;
                }
            }
        }
        Ok(())
    };
    transpose()?;
    let name = kernel
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned());
    let measured = cost(
        device,
        format!("transpose {name}"),
        8 * length as u64,
        out,
        transpose,
    )?;
    for (i, found) in transposed.download()?.into_iter().enumerate() {
        let (col, row) = (i / rows as usize, i % rows as usize);
        let wanted = host[row * cols as usize + col];
        ensure!(
            found == wanted,
            "row {col}, column {row}: wanted {wanted}, found {found}"
        );
    }
    Ok(measured)
}
