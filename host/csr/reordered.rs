//! Converting CSR matrices on the device: transposed, by column, with permuted rows.

use super::{DeviceCsr, DevicePattern};
use crate::device::{Device, DeviceBuffer, DeviceError, DeviceSlice, optional_pointer};
use crate::operand::OperandError;
use crate::primitives::scan::Scan;
use crate::primitives::sort::sort_pairs;
use cuda_std::element::Element;
use std::sync::Arc;
use warprow_kernels::matrix::csr::{by_column, rows};

/// The nonzeros of a matrix in the order of their columns, those of a column in the order of their rows.
#[derive(Debug)]
#[non_exhaustive]
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
        let [numbers, row, col] = self.pattern().by_column()?;
        Ok(NonzerosByColumn {
            row,
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
        let transposed = ReorderedPattern::new(self.pattern()).transpose()?;
        let values = transposed.gather(self.values())?;
        Ok(Self::from_parts(transposed.pattern, values))
    }
}

impl DevicePattern {
    /// The nonzeros by column, by a stable sort: the number, row and column of each.
    fn by_column(&self) -> Result<[DeviceBuffer<u32>; 3], OperandError> {
        let device = self.device();
        let mut numbers = number(device, self.nonzeros())?;
        // The sort overwrites its keys: a gather copies the columns.
        let mut col = gather(&numbers, &self.col_idx)?;
        sort_pairs(device, &mut col, &mut numbers, bits_below(self.cols))?;
        let row = gather(&numbers, &self.row_of_each()?)?;
        Ok([numbers, row, col])
    }
}

/// A pattern whose nonzeros are those of another one, in another order. Clones share its memory.
#[derive(Clone, Debug)]
pub(crate) struct ReorderedPattern {
    pub pattern: Arc<DevicePattern>,
    /// The number of each nonzero in the other pattern; `None` if the order is the same.
    pub source: Option<Arc<DeviceBuffer<u32>>>,
}

impl ReorderedPattern {
    /// The pattern itself.
    pub fn new(pattern: &Arc<DevicePattern>) -> Self {
        Self {
            pattern: Arc::clone(pattern),
            source: None,
        }
    }

    /// The values of the nonzeros in their new order; `values` has those of the other pattern.
    pub fn gather<T: Element>(
        &self,
        values: &DeviceBuffer<T>,
    ) -> Result<DeviceBuffer<T>, DeviceError> {
        let mut ordered = self.pattern.device().uninitialized(values.len())?;
        copy_values(
            self.source.as_deref(),
            values.as_slice(),
            Sign::Kept,
            &mut ordered,
        )?;
        Ok(ordered)
    }

    /// The nonzeros by column, and the row of each. The pattern has no row pointers then.
    pub fn by_column(self) -> Result<(Self, DeviceBuffer<u32>), OperandError> {
        let [numbers, row, col] = self.pattern.by_column()?;
        let sorted = DevicePattern {
            device: self.pattern.device().clone(),
            rows: self.pattern.rows,
            cols: self.pattern.cols,
            row_ptr: self.pattern.device().uninitialized(0)?,
            col_idx: col,
            longest_row: None,
        };
        let sorted = self.followed_by(sorted, numbers)?;
        Ok((sorted, row))
    }

    /// The transposed pattern.
    pub fn transpose(self) -> Result<Self, OperandError> {
        let pattern = &self.pattern;
        let device = pattern.device();
        let [numbers, row, col] = pattern.by_column()?;
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
        self.followed_by(transposed, numbers)
    }

    /// The pattern whose row i is row `order[i]` of this one; `order` is a permutation of the rows.
    pub fn permute_rows(&self, order: &DeviceBuffer<u32>) -> Result<Self, OperandError> {
        let pattern = &self.pattern;
        let device = pattern.device();
        let (row_count, nnz) = (pattern.rows, pattern.nonzeros());
        let mut row_ptr = device.uninitialized::<u32>(row_count as usize + 1)?;
        let mut col_idx = device.uninitialized::<u32>(nnz as usize)?;
        let mut source = device.uninitialized::<u32>(nnz as usize)?;
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
                    optional_pointer(self.source.as_deref()),
                    row_ptr.read_only(),
                    col_idx.mutable(),
                    source.mutable(),
                );
                device.launch(&rows::permute_rows(), rows::launch(nnz), arguments)?;
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
        Ok(Self {
            pattern: Arc::new(permuted),
            source: Some(Arc::new(source)),
        })
    }

    /// `pattern`, whose nonzeros have these `numbers` in this pattern.
    fn followed_by(
        self,
        pattern: DevicePattern,
        numbers: DeviceBuffer<u32>,
    ) -> Result<Self, OperandError> {
        let source = match self.source {
            Some(source) => gather(&numbers, &source)?,
            None => numbers,
        };
        Ok(Self {
            pattern: Arc::new(pattern),
            source: Some(Arc::new(source)),
        })
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
    let mut to = indices.device().uninitialized::<T>(indices.len())?;
    copy_values(Some(indices), from.as_slice(), Sign::Kept, &mut to)?;
    Ok(to)
}

/// A copy of fewer than 2^32 elements.
pub(crate) fn copy<T: Element>(from: DeviceSlice<'_, T>) -> Result<DeviceBuffer<T>, DeviceError> {
    let mut copied = from.device().uninitialized(from.len())?;
    copy_values(None, from, Sign::Kept, &mut copied)?;
    Ok(copied)
}

/// The sign of copied numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// As it was.
    Kept,
    /// The other one; the elements are floating-point numbers.
    Flipped,
}

/// `to[i] = from[indices[i]]`, or `from[i]` without indices, with that sign. It launches a kernel and allocates
/// nothing.
///
/// There are as many indices as elements of `to`, fewer than 2^32, all below the length of `from`; without indices
/// `from` is as long as `to`.
pub(crate) fn copy_values<T: Element>(
    indices: Option<&DeviceBuffer<u32>>,
    from: DeviceSlice<'_, T>,
    sign: Sign,
    to: &mut DeviceBuffer<T>,
) -> Result<(), DeviceError> {
    let len = to.len() as u32;
    if len == 0 {
        return Ok(());
    }
    let config = by_column::launch(len.into());
    let sign_bit = u64::from(sign == Sign::Flipped);
    let device = to.device().clone();
    let (indices, from, to) = (optional_pointer(indices), from.read_only(), to.mutable());
    // SAFETY: the indices are those of elements of `from`, and there is room for as many elements. An element of
    // any type is copied as the word of its size.
    unsafe {
        match size_of::<T>() {
            1 => {
                let arguments = (len, indices, from.cast(), (sign_bit << 7) as u8, to.cast());
                device.launch(&by_column::gather::<u8>(), config, arguments)
            }
            2 => {
                let flip = (sign_bit << 15) as u16;
                let arguments = (len, indices, from.cast(), flip, to.cast());
                device.launch(&by_column::gather::<u16>(), config, arguments)
            }
            4 => {
                let flip = (sign_bit << 31) as u32;
                let arguments = (len, indices, from.cast(), flip, to.cast());
                device.launch(&by_column::gather::<u32>(), config, arguments)
            }
            _ => {
                let arguments = (len, indices, from.cast(), sign_bit << 63, to.cast());
                device.launch(&by_column::gather::<u64>(), config, arguments)
            }
        }
    }
}

/// The bits of the numbers below `end`.
fn bits_below(end: u32) -> u32 {
    u32::BITS - end.saturating_sub(1).leading_zeros()
}
