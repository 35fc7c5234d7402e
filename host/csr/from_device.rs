//! Matrices of arrays that are already on a device.

use super::structure::Shape;
use super::{DeviceCsr, DevicePattern, copy};
use crate::device::{DeviceBuffer, DeviceSlice};
use crate::operand::{OperandError, check_operand, extent};
use cuda_std::element::Element;
use std::sync::Arc;

impl DevicePattern {
    /// The pattern of a `rows` x `cols` matrix in CSR whose arrays are already on a device: `rows + 1` row pointers,
    /// and the column of each nonzero, ascending within a row. The device checks them, and the call waits for it.
    ///
    /// ```
    /// use warprow::{Device, DeviceCsr, DevicePattern};
    ///
    /// # fn main() -> Result<(), warprow::Error> {
    /// // [ . 2 ]
    /// // [ 1 3 ]
    /// let device = Device::open()?;
    /// let (row_ptr, col_idx) = (device.upload(&[0_u32, 1, 3])?, device.upload(&[1_u32, 0, 1])?);
    /// let pattern = DevicePattern::from_device(2, 2, row_ptr, col_idx)?;
    /// let a = DeviceCsr::new(pattern, device.upload(&[2.0_f32, 1.0, 3.0])?)?;
    /// assert_eq!(a.download()?.to_dense(), ndarray::array![[0.0, 2.0], [1.0, 3.0]]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// - `rows` or `cols` or the number of nonzeros is 2^32 or more, or the arrays are on two devices.
    /// - There are not `rows + 1` row pointers, or they do not ascend from 0 to the number of nonzeros.
    /// - The columns of a row do not ascend, or one of them is not below `cols`.
    /// - The device has too little memory, or the driver fails.
    pub fn from_device(
        rows: usize,
        cols: usize,
        row_ptr: DeviceBuffer<u32>,
        col_idx: DeviceBuffer<u32>,
    ) -> Result<Arc<Self>, OperandError> {
        let mut pattern = Self::assembled(rows, cols, row_ptr, col_idx)?;
        let longest = Shape::by_rows(rows, cols).check_on_device(&pattern)?;
        pattern.longest_row = Some(longest);
        Ok(Arc::new(pattern))
    }

    /// As [`from_device`](Self::from_device), without a look at the arrays' elements and without waiting.
    ///
    /// # Errors
    ///
    /// - `rows` or `cols` or the number of nonzeros is 2^32 or more, or the arrays are on two devices.
    /// - There are not `rows + 1` row pointers.
    ///
    /// # Safety
    ///
    /// When the device has done what it was given so far, the row pointers ascend from 0 to the number of nonzeros, the
    /// columns of each row ascend, and all are below `cols`.
    pub unsafe fn from_device_unchecked(
        rows: usize,
        cols: usize,
        row_ptr: DeviceBuffer<u32>,
        col_idx: DeviceBuffer<u32>,
    ) -> Result<Arc<Self>, OperandError> {
        Self::assembled(rows, cols, row_ptr, col_idx).map(Arc::new)
    }

    /// Checks what the host knows of the arrays.
    fn assembled(
        rows: usize,
        cols: usize,
        row_ptr: DeviceBuffer<u32>,
        col_idx: DeviceBuffer<u32>,
    ) -> Result<Self, OperandError> {
        let device = row_ptr.device().clone();
        let rows = extent("the number of rows", rows)?;
        let cols = extent("the number of columns", cols)?;
        let nonzeros = extent("the number of nonzeros", col_idx.len())?;
        let pointers = u64::from(rows) + 1;
        check_operand(&device, "the list of row pointers", &row_ptr, pointers)?;
        check_operand(&device, "the list of columns", &col_idx, nonzeros.into())?;
        Ok(Self {
            rows,
            cols,
            device,
            row_ptr,
            col_idx,
            longest_row: None,
        })
    }
}

impl<T: Element> DeviceCsr<T> {
    /// A matrix of arrays that are already on a device: as [`DevicePattern::from_device`], with a value for each
    /// nonzero.
    ///
    /// # Errors
    ///
    /// Those of [`DevicePattern::from_device`] and [`new`](Self::new).
    pub fn from_device(
        rows: usize,
        cols: usize,
        row_ptr: DeviceBuffer<u32>,
        col_idx: DeviceBuffer<u32>,
        values: DeviceBuffer<T>,
    ) -> Result<Self, OperandError> {
        Self::new(
            DevicePattern::from_device(rows, cols, row_ptr, col_idx)?,
            values,
        )
    }
    /// As [`from_device`](Self::from_device), for arrays that the caller keeps: it copies them, on the device.
    ///
    /// # Errors
    ///
    /// Those of [`from_device`](Self::from_device).
    pub fn copy_from_device<'a>(
        rows: usize,
        cols: usize,
        row_ptr: impl Into<DeviceSlice<'a, u32>>,
        col_idx: impl Into<DeviceSlice<'a, u32>>,
        values: impl Into<DeviceSlice<'a, T>>,
    ) -> Result<Self, OperandError> {
        let (row_ptr, col_idx, values) = (row_ptr.into(), col_idx.into(), values.into());
        // What the kernels that copy can count.
        extent("the number of row pointers", row_ptr.len())?;
        extent("the number of nonzeros", col_idx.len().max(values.len()))?;
        Self::from_device(rows, cols, copy(row_ptr)?, copy(col_idx)?, copy(values)?)
    }
}
