//! Operands: the checks that every operation makes before it launches a kernel, and the upload of dense matrices.

use crate::device::{Device, DeviceBuffer, DeviceError, DeviceSlice};
use cuda_std::element::Element;
use ndarray::ArrayView2;

/// An operand that does not fit its operation, or a device that failed.
///
/// All operations share it, since all ask the same of their operands.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperandError {
    /// A size that kernels cannot count: their indices have 32 bits.
    #[error("too large: {what} is {found}, at most {most} is possible")]
    TooLarge {
        /// What has the size.
        what: &'static str,
        /// The size.
        found: u128,
        /// The greatest size.
        most: u64,
    },

    /// A buffer does not have the length that an operation wants.
    #[error("wrong length: {what} has {found} elements, wanted are {wanted}")]
    Length {
        /// The buffer.
        what: &'static str,
        /// The length wanted.
        wanted: u64,
        /// The length found.
        found: u64,
    },

    /// A matrix does not have the number of rows that an operation wants.
    #[error("wrong shape: {what} is {} x {}, wanted are {rows} rows", .found.0, .found.1)]
    Rows {
        /// The matrix.
        what: &'static str,
        /// The rows wanted.
        rows: usize,
        /// Rows and columns found.
        found: (usize, usize),
    },

    /// A matrix does not have the number of columns that an operation wants.
    #[error("wrong shape: {what} is {} x {}, wanted are {columns} columns", .found.0, .found.1)]
    Columns {
        /// The matrix.
        what: &'static str,
        /// The columns wanted.
        columns: usize,
        /// Rows and columns found.
        found: (usize, usize),
    },

    /// The rows of a view overlap.
    #[error("wrong leading dimension: it is {found}, at least the {columns} columns are wanted")]
    LeadingDimension {
        /// The columns of the view.
        columns: usize,
        /// The leading dimension found.
        found: usize,
    },

    /// A slice has too few elements for a view.
    #[error(
        "too short: {rows} x {columns} elements with leading dimension {leading_dimension} end at element {wanted}, \
         the slice has {found}"
    )]
    TooShort {
        /// The rows of the view.
        rows: usize,
        /// The columns of the view.
        columns: usize,
        /// The leading dimension of the view.
        leading_dimension: usize,
        /// The least number of elements.
        wanted: u128,
        /// The number of elements found.
        found: u64,
    },

    /// A view does not have all of these columns.
    #[error("no such columns: {start}..{end} of {columns}")]
    ColumnRange {
        /// The first column.
        start: usize,
        /// The column after the last.
        end: usize,
        /// The columns of the view.
        columns: usize,
    },

    /// A buffer is on another device than the operation.
    #[error("{what} is on another device: it is on {found}, the operation on {wanted}")]
    OtherDevice {
        /// The buffer.
        what: &'static str,
        /// The [identity](Device::identity) of the operation's device.
        wanted: String,
        /// The [identity](Device::identity) of the buffer's device.
        found: String,
    },

    /// A matrix on several devices has other rows on them than an operation wants.
    #[error("other parts: {what} was made by a plan that divides its rows in another way")]
    OtherParts {
        /// The matrix.
        what: &'static str,
    },

    /// A slice does not start where kernels can load 16 bytes at once.
    #[error(
        "wrong alignment: {what} is at address {address:#x}, wanted is a multiple of {wanted} bytes"
    )]
    Alignment {
        /// The slice.
        what: &'static str,
        /// The alignment wanted, in bytes.
        wanted: u64,
        /// The address of its first element.
        address: u64,
    },

    /// Lists that are no sparse matrix, or no order or division of its rows: device arrays whose columns do not ascend,
    /// for example, or a matrix of `sprs` that safe code has broken.
    #[error("no sparse matrix: {line} {number}: {reason}")]
    Structure {
        /// How the matrix is stored: `row` by row, or `column` by column.
        line: &'static str,
        /// The first faulty row or column, counted from 0.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },

    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// The size as kernels count it: rows, columns and nonzeros have 32 bits.
pub(crate) fn extent(what: &'static str, found: usize) -> Result<u32, OperandError> {
    count(what, found as u64)
}

/// A number that kernels count with 32 bits.
pub(crate) fn count(what: &'static str, found: u64) -> Result<u32, OperandError> {
    u32::try_from(found).map_err(|_| OperandError::TooLarge {
        what,
        found: found.into(),
        most: u32::MAX.into(),
    })
}

/// The elements of a dense matrix: two 32-bit extents have a 64-bit product.
pub(crate) fn elements(rows: u32, columns: u32) -> u64 {
    u64::from(rows) * u64::from(columns)
}

/// Bytes of a row of so many columns.
pub(crate) fn row_bytes<T>(columns: u32) -> u64 {
    u64::from(columns) * size_of::<T>() as u64
}

/// The length of a buffer for so many elements.
pub(crate) fn buffer_len(what: &'static str, elements: u64) -> Result<usize, OperandError> {
    usize::try_from(elements).map_err(|_| OperandError::TooLarge {
        what,
        found: elements.into(),
        most: usize::MAX as u64,
    })
}

/// Kernels load and copy up to so many bytes at once, from the first element on.
pub(crate) const ALIGNMENT: u64 = 16;

/// Checks that a buffer or slice is on `device`.
pub(crate) fn check_device<'a, T: Element>(
    device: &Device,
    what: &'static str,
    operand: impl Into<DeviceSlice<'a, T>>,
) -> Result<(), OperandError> {
    let found = operand.into().device();
    if found == device {
        return Ok(());
    }
    Err(OperandError::OtherDevice {
        what,
        wanted: device.identity().to_owned(),
        found: found.identity().to_owned(),
    })
}

/// Checks that a buffer or slice is on `device`, has `wanted` elements, and is aligned as kernels want it.
pub(crate) fn check_operand<'a, T: Element>(
    device: &Device,
    what: &'static str,
    operand: impl Into<DeviceSlice<'a, T>>,
    wanted: u64,
) -> Result<(), OperandError> {
    let operand = operand.into();
    check_device(device, what, operand)?;
    check_len(what, operand.len() as u64, wanted)?;
    let address = operand.address();
    if wanted == 0 || address.is_multiple_of(ALIGNMENT) {
        return Ok(());
    }
    Err(OperandError::Alignment {
        what,
        wanted: ALIGNMENT,
        address,
    })
}

/// Checks that something has `wanted` elements.
pub(crate) fn check_len(what: &'static str, found: u64, wanted: u64) -> Result<(), OperandError> {
    if found == wanted {
        return Ok(());
    }
    Err(OperandError::Length {
        what,
        wanted,
        found,
    })
}

/// Uploads a dense matrix of any memory layout, row-major.
pub(crate) fn upload_dense<T: Element>(
    device: &Device,
    matrix: ArrayView2<'_, T>,
) -> Result<DeviceBuffer<T>, DeviceError> {
    match matrix.as_standard_layout().as_slice() {
        Some(elements) => device.upload(elements),
        None => unreachable!("the standard layout is contiguous"),
    }
}
