//! A in CSR on the device, for those that have no plan of their own: cuSPARSE and the gather limit.

use cuda_std::element::Element;
use sprs::CsMatViewI;
use warprow::Error;
use warprow::device::{Device, DeviceBuffer};

/// A CSR matrix on the device.
#[derive(Debug)]
pub struct CsrBuffers<T: Element> {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Where each row starts, and the last one ends.
    pub row_ptr: DeviceBuffer<u32>,
    /// The column of each nonzero.
    pub col_idx: DeviceBuffer<u32>,
    /// The value of each nonzero.
    pub values: DeviceBuffer<T>,
}

impl<T: Element> CsrBuffers<T> {
    /// Uploads a matrix stored by rows.
    ///
    /// # Errors
    ///
    /// Too little device memory.
    pub fn upload(device: &Device, a: CsMatViewI<'_, T, u32, u32>) -> Result<Self, Error> {
        Ok(Self {
            rows: a.rows(),
            cols: a.cols(),
            row_ptr: device.upload(&a.indptr().to_proper())?,
            col_idx: device.upload(a.indices())?,
            values: device.upload(a.data())?,
        })
    }
}
