//! The formats of results that all ranks write into one file, each its rows.

use super::DistributedCsr;
use super::shared_file::SharedFile;
use crate::world::{Word, World};
use anyhow::Result;
use ndarray::ArrayView2;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use warprow::{CsrMatrix, Scalar};

/// Bytes of text that are written at a time.
const BLOCK: usize = 1 << 20;

/// Writes C, of which each rank has the rows that it owns, in Matrix Market's coordinate format.
///
/// # Errors
///
/// The file cannot be written.
pub fn write_sparse<T: Scalar>(
    world: &World,
    file: SharedFile,
    a: &DistributedCsr<T>,
    c: &CsrMatrix<T>,
) -> Result<()> {
    let entries: u64 = world.all(c.nnz() as u64).iter().sum();
    let header = format!(
        "%%MatrixMarket matrix coordinate real general\n{} {} {entries}\n",
        a.shape().0,
        c.cols()
    );
    let mut bytes = 0;
    for_each_block(a, c, |block| {
        bytes += block.len() as u64;
        Ok(())
    })?;
    let before: u64 = world.all(bytes)[..world.rank()].iter().sum();
    file.write(world, header.as_bytes(), |file| {
        let mut position = header.len() as u64 + before;
        for_each_block(a, c, |block| {
            file.write_all_at(block, position)?;
            position += block.len() as u64;
            Ok(())
        })
    })
}

/// Calls `take` with blocks of lines, one for each entry of this rank's rows.
fn for_each_block<T: Scalar>(
    a: &DistributedCsr<T>,
    c: &CsrMatrix<T>,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut block = Vec::with_capacity(BLOCK);
    for (row, entries) in a.part().owned.clone().zip(c.outer_iterator()) {
        let row = a.order().original_row(row) + 1;
        for (column, value) in entries.iter() {
            writeln!(block, "{row} {} {value:?}", column + 1)?;
            if block.len() >= BLOCK {
                take(&block)?;
                block.clear();
            }
        }
    }
    take(&block)
}

/// Writes Y, of which each rank has the rows that it owns, as a `.npy` file.
///
/// # Errors
///
/// The file cannot be written.
pub fn write_dense<T: Scalar + Word>(
    world: &World,
    file: SharedFile,
    a: &DistributedCsr<T>,
    y: ArrayView2<'_, T>,
) -> Result<()> {
    let header = npy_header(size_of::<T>(), (a.shape().0, y.ncols()));
    file.write(world, &header, |file| {
        for (row, values) in a.part().owned.clone().zip(y.rows()) {
            let row_bytes = y.ncols() * size_of::<T>();
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|value| little_endian(*value))
                .collect();
            let position = header.len() + a.order().original_row(row) * row_bytes;
            file.write_all_at(&bytes, position as u64)?;
        }
        Ok(())
    })
}

/// The bytes of a number as a file has them: f32 if the type has 4 bytes, else f64.
fn little_endian<T: Scalar>(value: T) -> Vec<u8> {
    match size_of::<T>() {
        4 => (value.to_f64() as f32).to_le_bytes().to_vec(),
        _ => value.to_f64().to_le_bytes().to_vec(),
    }
}

/// The header of an npy file, version 1.0: floats of so many bytes, row-major.
fn npy_header(bytes: usize, (rows, columns): (usize, usize)) -> Vec<u8> {
    let mut text =
        format!("{{'descr': '<f{bytes}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    // Magic, version and length take 10 bytes; the whole is a multiple of 64 and ends with a new line.
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_npy_header_is_aligned_and_says_its_length() {
        for shape in [(0, 0), (3, 5), (123_456_789, 512)] {
            let header = npy_header(4, shape);
            assert_eq!(header.len() % 64, 0);
            let length = u16::from_le_bytes([header[8], header[9]]) as usize;
            assert_eq!(
                (header.len(), header[header.len() - 1]),
                (10 + length, b'\n')
            );
        }
    }
}
