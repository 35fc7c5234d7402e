//! Converting CSR matrices on the device: transposed, by column, with permuted rows.

use super::{DeviceCsr, DevicePattern};
use crate::device::{Device, DeviceBuffer};
use crate::operand::OperandError;
use crate::primitives::scan::Scan;
use crate::primitives::sort::sort_pairs;
use cuda_std::element::Element;
use warprow_kernels::matrix::csr::{by_column, rows};

/// The nonzeros of a matrix in the order of their columns, those of a column in the order of their rows.
#[derive(Debug)]
pub struct NonzerosByColumn<T: Element> {
    /// The row of each.
    pub row: DeviceBuffer<u32>,
    /// The column of each.
    pub col: DeviceBuffer<u32>,
    /// The value of each.
    pub values: DeviceBuffer<T>,
}

impl<T: Element> DeviceCsr<T> {
    /// The nonzeros by column, by a stable sort: the order of CSC.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub fn by_column(&self) -> Result<NonzerosByColumn<T>, OperandError> {
        let device = self.device();
        let pattern = self.pattern();
        let mut numbers = number(device, pattern.nonzeros())?;
        // The sort overwrites its keys: a gather copies the columns.
        let mut col = gather(&numbers, &pattern.col_idx)?;
        sort_pairs(device, &mut col, &mut numbers, bits_below(pattern.cols))?;
        Ok(NonzerosByColumn {
            row: gather(&numbers, &pattern.row_of_each()?)?,
            col,
            values: gather(&numbers, self.values())?,
        })
    }

    /// The transposed matrix. Its nonzeros are in the same order every time.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub fn transpose(&self) -> Result<Self, OperandError> {
        let NonzerosByColumn { row, col, values } = self.by_column()?;
        let (device, pattern) = (self.device(), self.pattern());
        let (rows, cols) = (pattern.rows, pattern.cols);
        let mut row_ptr = device.uninitialized::<u32>(cols as usize + 1)?;
        let arguments = (pattern.nonzeros(), col.read_only(), cols, row_ptr.mutable());
        let config = by_column::launch(u64::from(cols) + 1);
        // SAFETY: the columns are sorted; `row_ptr` has an element for each column and one for the end.
        unsafe { device.launch(&by_column::starts(), config, arguments)? };
        let transposed = DevicePattern {
            device: device.clone(),
            rows: cols,
            cols: rows,
            row_ptr,
            col_idx: row,
            longest_row: None,
        };
        Ok(Self::from_parts(transposed, values))
    }

    /// The matrix whose row i is row `order[i]` of this one; `order` is a permutation of the rows.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub(crate) fn permute_rows(&self, order: &DeviceBuffer<u32>) -> Result<Self, OperandError> {
        let device = self.device();
        let pattern = self.pattern();
        let (row_count, nnz) = (pattern.rows, pattern.nonzeros());
        let mut row_ptr = device.uninitialized::<u32>(row_count as usize + 1)?;
        let mut col_idx = device.uninitialized::<u32>(nnz as usize)?;
        let mut values = device.uninitialized::<T>(nnz as usize)?;
        let config = by_column::launch(u64::from(row_count) + 1);
        let order = order.read_only();
        let old = pattern.row_ptr.read_only();
        // SAFETY: `order` is a permutation of the rows; the other buffers have a row pointer for each row and one for
        // the end, and an element for each nonzero.
        unsafe {
            device.launch(
                &rows::permuted_lengths(),
                config,
                (row_count, old, order, row_ptr.mutable()),
            )?;
            Scan::new(device, row_ptr.len())?.run(&mut row_ptr)?;
            if nnz > 0 {
                let arguments = (
                    row_count,
                    nnz,
                    order,
                    old,
                    pattern.col_idx.read_only(),
                    self.values().read_only(),
                    row_ptr.read_only(),
                    col_idx.mutable(),
                    values.mutable(),
                );
                device.launch(&rows::permute_rows::<T>(), rows::launch(nnz), arguments)?;
            }
        }
        let permuted = DevicePattern {
            device: device.clone(),
            rows: row_count,
            cols: pattern.cols,
            row_ptr,
            col_idx,
            longest_row: pattern.longest_row,
        };
        Ok(Self::from_parts(permuted, values))
    }
}

/// The segment of each of `count` elements. Segment i starts at `starts[i]`; the last of `starts` is `count`.
pub(crate) fn expand(
    segments: u32,
    count: u32,
    starts: &DeviceBuffer<u32>,
) -> Result<DeviceBuffer<u32>, OperandError> {
    let device = starts.device();
    let mut segment = device.uninitialized::<u32>(count as usize)?;
    if count > 0 {
        let arguments = (segments, count, starts.read_only(), segment.mutable());
        // SAFETY: the starts ascend from 0 to `count`, and there is room for each element's segment.
        unsafe { device.launch(&rows::row_of_each(), rows::launch(count), arguments)? };
    }
    Ok(segment)
}

/// The numbers from 0 on.
pub(crate) fn number(device: &Device, len: u32) -> Result<DeviceBuffer<u32>, OperandError> {
    let mut numbers = device.uninitialized::<u32>(len as usize)?;
    if len > 0 {
        let config = by_column::launch(len.into());
        // SAFETY: there is room for `len` numbers.
        unsafe { device.launch(&by_column::number(), config, (len, numbers.mutable()))? };
    }
    Ok(numbers)
}

/// The elements of `from` at `indices`, which are fewer than 2^32 and all below the length of `from`.
pub(crate) fn gather<T: Element>(
    indices: &DeviceBuffer<u32>,
    from: &DeviceBuffer<T>,
) -> Result<DeviceBuffer<T>, OperandError> {
    let device = indices.device();
    let len = indices.len() as u32;
    let mut to = device.uninitialized::<T>(indices.len())?;
    if len > 0 {
        let config = by_column::launch(len.into());
        let (indices, from, to) = (indices.read_only(), from.read_only(), to.mutable());
        // SAFETY: the indices are those of elements of `from`, and there is room for as many elements. An element of
        // any type is copied as the word of its size.
        unsafe {
            if size_of::<T>() == 4 {
                let arguments = (len, indices, from.cast(), to.cast());
                device.launch(&by_column::gather::<u32>(), config, arguments)?;
            } else {
                let arguments = (len, indices, from, to);
                device.launch(&by_column::gather::<T>(), config, arguments)?;
            }
        }
    }
    Ok(to)
}

/// The bits of the numbers below `end`.
fn bits_below(end: u32) -> u32 {
    u32::BITS - end.saturating_sub(1).leading_zeros()
}
