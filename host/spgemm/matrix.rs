//! Matrices in CSR on a device: what SpGEMM multiplies and what it makes.

use crate::CsrMatrix;
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use crate::scalar::Scalar;
use cuda_std::element::Element;
use sprs::{CsMatI, CsMatViewI};
use std::sync::Arc;
use warprow_kernels::spgemm::{Pattern, Structure};

/// Where the nonzeros of a matrix on a device are; its values are apart, so that many matrices share it.
#[derive(Debug)]
pub struct DevicePattern {
    pub(super) device: Device,
    pub(super) rows: u32,
    pub(super) cols: u32,
    pub(super) row_ptr: DeviceBuffer<u32>,
    pub(super) col_idx: DeviceBuffer<u32>,
}

impl DevicePattern {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols as usize
    }

    /// Nonzeros, stored zeros among them.
    pub fn nnz(&self) -> usize {
        self.col_idx.len()
    }

    /// The device that has it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// `rows + 1` positions in the columns.
    pub fn row_ptr(&self) -> &DeviceBuffer<u32> {
        &self.row_ptr
    }

    /// The column of each nonzero, ascending within a row.
    pub fn col_idx(&self) -> &DeviceBuffer<u32> {
        &self.col_idx
    }

    pub(super) fn as_argument(&self) -> Pattern {
        Pattern {
            rows: self.rows,
            cols: self.cols,
            row_ptr: self.row_ptr.read_only(),
            col_idx: self.col_idx.read_only(),
        }
    }

    pub(super) fn structure(&self) -> Structure {
        Structure {
            row_ptr: self.row_ptr.read_only(),
            col_idx: self.col_idx.read_only(),
        }
    }
}

/// A matrix in CSR on a device, columns ascending within each row.
#[derive(Debug)]
pub struct DeviceCsr<T: Element> {
    pattern: Arc<DevicePattern>,
    values: DeviceBuffer<T>,
}

impl<T: Element> DeviceCsr<T> {
    /// Uploads a matrix. One in column order (CSC) is converted first, which takes a copy of it on the host.
    ///
    /// # Errors
    ///
    /// 2^32 rows or columns or more, nonzeros beyond 2^32 - 2^16; too little device memory; the driver's.
    pub fn upload(device: &Device, matrix: CsMatViewI<'_, T, u32, u32>) -> Result<Self, Error>
    where
        T: Scalar + Default,
    {
        if matrix.is_csc() {
            return Self::upload(device, matrix.to_csr().view());
        }
        let pattern = DevicePattern {
            device: device.clone(),
            rows: bounded("the number of rows", matrix.rows(), u32::MAX)?,
            cols: bounded("the number of columns", matrix.cols(), u32::MAX)?,
            // A view of some rows of a matrix has row pointers that do not start at 0.
            row_ptr: device.upload(&matrix.indptr().to_proper())?,
            col_idx: {
                bounded("the number of nonzeros", matrix.nnz(), MOST_NONZEROS)?;
                device.upload(matrix.indices())?
            },
        };
        Ok(Self {
            pattern: Arc::new(pattern),
            values: device.upload(matrix.data())?,
        })
    }

    /// A matrix of values and their places.
    ///
    /// # Errors
    ///
    /// Not as many values as places; values on another device.
    pub fn new(pattern: Arc<DevicePattern>, values: DeviceBuffer<T>) -> Result<Self, Error> {
        check(&pattern, "the values", &values)?;
        Ok(Self { pattern, values })
    }

    /// Where the nonzeros are.
    pub fn pattern(&self) -> &Arc<DevicePattern> {
        &self.pattern
    }

    /// The values.
    pub fn values(&self) -> &DeviceBuffer<T> {
        &self.values
    }

    /// The values, to be changed.
    pub fn values_mut(&mut self) -> &mut DeviceBuffer<T> {
        &mut self.values
    }

    /// The matrix on the host.
    ///
    /// # Errors
    ///
    /// A launch that failed before; a host without memory for it.
    ///
    /// # Panics
    ///
    /// If the columns on the device are not those of a matrix, which is a bug of whoever wrote them.
    pub fn download(&self) -> Result<CsrMatrix<T>, Error> {
        let pattern = &self.pattern;
        let matrix = CsMatI::try_new(
            (pattern.rows(), pattern.cols()),
            pattern.row_ptr.download()?,
            pattern.col_idx.download()?,
            self.values.download()?,
        );
        match matrix {
            Ok(matrix) => Ok(matrix),
            Err((_, _, _, error)) => panic!("the device holds no matrix: {error}"),
        }
    }
}

/// Nonzeros of an operand, at most: positions stay below 2^32 when a block's stride is added.
const MOST_NONZEROS: u32 = u32::MAX - (1 << 16);

/// That values are as many as a pattern has places, and on its device.
pub(super) fn check<T: Element>(
    pattern: &DevicePattern,
    what: &'static str,
    values: &DeviceBuffer<T>,
) -> Result<(), Error> {
    crate::scan::check_device(&pattern.device, what, values)?;
    if values.len() == pattern.nnz() {
        return Ok(());
    }
    Err(Error::Length {
        what,
        wanted: pattern.nnz() as u64,
        found: values.len() as u64,
    })
}

/// A number that fits, or an error that names it.
pub(super) fn bounded(what: &'static str, found: usize, most: u32) -> Result<u32, Error> {
    u32::try_from(found)
        .ok()
        .filter(|&found| found <= most)
        .ok_or(Error::TooLarge {
            what,
            found: found as u128,
            most: most.into(),
        })
}
