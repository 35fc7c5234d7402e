//! Products of matrices of the host, in blocks of rows if the whole does not fit the device or 32 bits.

use super::multiply::{DeviceProduct, multiply};
use super::options::{SpgemmElement, SpgemmOptions};
use super::products::operands::{MAX_NONZEROS, check_shapes};
use crate::csr::{CsrMatrix, DeviceCsr, check};
use crate::device::{Device, DeviceError};
use crate::operand::OperandError;
use sprs::{CsMatI, CsMatViewI};
use std::ops::Range;

/// A product on the host, and how it was computed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SpgemmProduct<T> {
    /// C, its rows sorted by column.
    pub c: CsrMatrix<T>,
    /// Products: multiplications of a nonzero of A with one of B.
    pub products: u64,
    /// The blocks of rows in which it was computed: one if all fitted the device.
    pub blocks: usize,
}

/// Device bytes of a row of A and C in addition to its entries: row pointers, work, bins and lists.
const ROW_BYTES: u64 = 72;

/// Device bytes of a row of B in addition to its nonzeros: its row pointer and extents.
const B_ROW_BYTES: u64 = 20;

/// Device bytes of a nonzero of B in addition to its column and value: the pair of both.
const PAIR_BYTES: u64 = 8;

/// Rows of A whose entries and bytes are bounded at once: they take memory until they are in a block.
const ROWS_AT_ONCE: usize = 1 << 20;

/// Percentage of the free memory that is used; the driver's granularity takes the rest.
const USED_PERCENT: u64 = 90;

/// The product `C = A B` of two matrices of the host, in CSR or CSC.
///
/// If the device, or the memory that the options allow, has no room for the whole, C is computed in blocks of rows,
/// which the host joins.
///
/// # Errors
///
/// - B has not as many rows as A has columns, or the lists of A or B are no valid matrix.
/// - C has 2^32 entries or more. [`spgemm_in_blocks`] has no such limit.
/// - The device has no memory for B and the largest row of C, or the driver fails.
pub fn spgemm<T: SpgemmElement>(
    device: &Device,
    a: CsMatViewI<'_, T, u32, u32>,
    b: CsMatViewI<'_, T, u32, u32>,
    options: SpgemmOptions,
) -> Result<SpgemmProduct<T>, OperandError> {
    let mut products = 0;
    let mut blocks = Vec::new();
    let mut entries = 0_u64;
    spgemm_in_blocks(device, a, b, options, |_, c, block_products| {
        products += block_products;
        entries += c.nnz() as u64;
        if entries > u32::MAX.into() {
            return Err(OperandError::TooLarge {
                what: "the number of entries of C's first rows",
                found: entries.into(),
                most: u32::MAX.into(),
            });
        }
        blocks.push(c);
        Ok(())
    })?;
    let count = blocks.len();
    let shape = (a.rows(), b.cols());
    Ok(SpgemmProduct {
        c: stacked(shape, blocks)?,
        products,
        blocks: count,
    })
}

/// Computes `C = A B` as [`spgemm`] does, and gives each block of rows to `take` as soon as it is there: its rows in
/// C, the block, and its products. So C may be larger than any memory.
///
/// # Errors
///
/// Those of [`spgemm`], and what `take` returns.
pub fn spgemm_in_blocks<T: SpgemmElement, Failure: From<OperandError>>(
    device: &Device,
    a: CsMatViewI<'_, T, u32, u32>,
    b: CsMatViewI<'_, T, u32, u32>,
    options: SpgemmOptions,
    take: impl FnMut(Range<usize>, CsrMatrix<T>, u64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // The host reads both before a device has checked them.
    check(&a)?;
    check(&b)?;
    checked_in_blocks(device, a, b, options, take)
}

/// As [`spgemm_in_blocks`], for operands that have been checked.
fn checked_in_blocks<T: SpgemmElement, Failure: From<OperandError>>(
    device: &Device,
    a: CsMatViewI<'_, T, u32, u32>,
    b: CsMatViewI<'_, T, u32, u32>,
    options: SpgemmOptions,
    mut take: impl FnMut(Range<usize>, CsrMatrix<T>, u64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if a.is_csc() {
        return checked_in_blocks(device, to_csr(&a)?.view(), b, options, take);
    }
    if b.is_csc() {
        return checked_in_blocks(device, a, to_csr(&b)?.view(), options, take);
    }
    check_shapes((a.rows(), a.cols()), (b.rows(), b.cols()))?;
    let memory = match options.tuning.memory {
        Some(bytes) => Some(bytes),
        None => (device.memory().map_err(OperandError::from)?)
            .map(|memory| memory.free / 100 * USED_PERCENT),
    };
    let blocks = row_blocks::<T>(device, &a, &b, memory)?;
    let b = DeviceCsr::upload(device, b)?;
    for rows in blocks {
        let block = DeviceCsr::upload(device, a.slice_outer(rows.clone()))?;
        let DeviceProduct { c, products } = multiply(&block, &b, options)?;
        take(rows, c.download()?, products)?;
    }
    Ok(())
}

/// Ranges of rows whose products fit the memory and 32 bits: at least one, which may be empty.
fn row_blocks<T: SpgemmElement>(
    device: &Device,
    a: &CsMatViewI<'_, T, u32, u32>,
    b: &CsMatViewI<'_, T, u32, u32>,
    memory: Option<u64>,
) -> Result<Vec<Range<usize>>, OperandError> {
    let element = size_of::<T>() as u64;
    let nonzero = 4 + element;
    let b_bytes = b.nnz() as u64 * (nonzero + PAIR_BYTES) + (b.rows() as u64 + 1) * B_ROW_BYTES;
    let left = match memory {
        None => u64::MAX,
        Some(memory) => memory
            .checked_sub(b_bytes)
            .ok_or_else(|| out_of_memory(device, b_bytes, memory))?,
    };
    // Upper bounds of a row's entries and bytes. Columns count twice, because they are staged first.
    let bounds_of_row = |row| {
        let row = a.outer_view(row).expect("the row is one of the matrix");
        let products: u64 = (row.indices().iter())
            .map(|&k| b.indptr().nnz_in_outer_sz(k as usize) as u64)
            .sum();
        let entries = products.min(b.cols() as u64);
        let bytes = ROW_BYTES + row.nnz() as u64 * nonzero + entries * (8 + 2 * element);
        (entries, bytes)
    };
    let mut blocks = Vec::new();
    let (mut start, mut entries, mut bytes) = (0, 0_u64, 0_u64);
    for first in (0..a.rows()).step_by(ROWS_AT_ONCE) {
        let rows = first..a.rows().min(first + ROWS_AT_ONCE);
        let bounds = parallel::map(rows.len(), |row| bounds_of_row(first + row));
        for (row, (row_entries, row_bytes)) in rows.zip(bounds) {
            if row_bytes > left {
                let wanted = b_bytes.saturating_add(row_bytes);
                return Err(out_of_memory(device, wanted, memory.unwrap_or(u64::MAX)));
            }
            let fits =
                entries + row_entries <= u64::from(MAX_NONZEROS) && bytes + row_bytes <= left;
            if !fits {
                blocks.push(start..row);
                (start, entries, bytes) = (row, 0, 0);
            }
            entries += row_entries;
            bytes += row_bytes;
        }
    }
    blocks.push(start..a.rows());
    Ok(blocks)
}

fn out_of_memory(device: &Device, wanted: u64, free: u64) -> OperandError {
    let error = DeviceError::OutOfMemory {
        device: device.name().to_owned(),
        wanted,
        free: Some(free),
    };
    error.into()
}

/// The matrix whose rows are those of the blocks, one after the other.
fn stacked<T: SpgemmElement>(
    shape: (usize, usize),
    mut blocks: Vec<CsrMatrix<T>>,
) -> Result<CsrMatrix<T>, OperandError> {
    if blocks.len() == 1 {
        return Ok(blocks.remove(0));
    }
    let entries = blocks.iter().map(|block| block.nnz()).sum();
    let mut row_ptr = with_capacity(shape.0 + 1)?;
    let (mut columns, mut values) = (with_capacity(entries)?, with_capacity(entries)?);
    row_ptr.push(0);
    for block in blocks {
        // The caller has counted that all entries are fewer than 2^32.
        let before = columns.len() as u32;
        let (block_ptr, block_columns, block_values) = block.into_raw_storage();
        row_ptr.extend(block_ptr[1..].iter().map(|end| before + end));
        columns.extend(block_columns);
        values.extend(block_values);
    }
    Ok(CsMatI::new(shape, row_ptr, columns, values))
}

/// A list with room for so many elements.
fn with_capacity<E>(elements: usize) -> Result<Vec<E>, DeviceError> {
    let mut list = Vec::new();
    match list.try_reserve_exact(elements) {
        Ok(()) => Ok(list),
        Err(_) => Err(DeviceError::HostOutOfMemory {
            wanted: elements as u64 * size_of::<E>() as u64,
        }),
    }
}

/// A matrix that is stored by columns, by rows. `sprs` makes it, which would end the process if memory ran out.
fn to_csr<T: SpgemmElement>(a: &CsMatViewI<'_, T, u32, u32>) -> Result<CsrMatrix<T>, OperandError> {
    // The row pointers, another list as long, the columns and the values.
    let words = 2 * (a.rows() + 1) + a.nnz() * (1 + size_of::<T>() / size_of::<u32>());
    with_capacity::<u32>(words)?;
    Ok(a.to_csr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::EmulatorOptions;

    #[test]
    fn blocks_have_all_rows_in_order_and_as_many_as_the_memory_allows() {
        // More rows than are bounded at once, of one product each.
        let rows = ROWS_AT_ONCE as u32 + 5;
        let a = CsMatI::new(
            (rows as usize, 1),
            (0..=rows).collect(),
            vec![0; rows as usize],
            vec![1.0_f32; rows as usize],
        );
        let b = CsMatI::new((1, 1), vec![0_u32, 1], vec![0_u32], vec![1.0_f32]);
        let device = Device::emulator(EmulatorOptions::default());
        let of_row = ROW_BYTES + 8 + 16;
        let of_b = 8 + PAIR_BYTES + 2 * B_ROW_BYTES;
        let memory = Some(of_b + 1000 * of_row);
        let blocks = row_blocks::<f32>(&device, &a.view(), &b.view(), memory).unwrap();
        let mut next = 0;
        for block in &blocks {
            assert_eq!(*block, next..(next + 1000).min(rows as usize));
            next = block.end;
        }
        assert_eq!(next, rows as usize);
    }

    #[test]
    fn a_list_that_no_host_can_hold_is_an_error_with_its_bytes() {
        let error = with_capacity::<u64>(1 << 58).unwrap_err();
        assert!(
            matches!(error, DeviceError::HostOutOfMemory { wanted } if wanted == 1 << 61),
            "{error}"
        );
    }
}
