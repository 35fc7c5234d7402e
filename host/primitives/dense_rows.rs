//! Rows of a dense matrix on a device, copied together.

use crate::device::{DeviceBuffer, DeviceError, DeviceSlice, DeviceSliceMut};
use crate::scalar::Scalar;
use cuda_std::element::Element;
use half::f16;
use warprow_kernels::matrix::dense_rows;

/// Copies rows of a row-major matrix with `cols` columns to the start of `to`, in the order of their numbers in
/// `rows`.
///
/// # Errors
///
/// The driver's.
///
/// # Panics
///
/// If the buffers are on different devices, or `to` has no room for the rows.
///
/// # Safety
///
/// Each number is that of a row of `from`.
pub(crate) unsafe fn gather_rows<T: Element + Scalar>(
    rows: &DeviceBuffer<u32>,
    from: DeviceSlice<'_, T>,
    cols: u32,
    to: &mut DeviceSliceMut<'_, T>,
) -> Result<(), DeviceError> {
    let device = rows.device();
    assert!(from.device() == device && to.device() == device);
    // Row numbers are u32, and no row is sent twice to one part.
    let count = rows.len() as u32;
    assert!(u64::from(count) * u64::from(cols) <= to.len() as u64);
    if count == 0 || cols == 0 {
        return Ok(());
    }
    let config = dense_rows::launch(count);
    let (rows, from, to) = (rows.read_only(), from.read_only(), to.mutable());
    // SAFETY: the caller guarantees that the rows are those of `from`; `to` has room, checked above. An element of any
    // type is copied as the word of its size.
    unsafe {
        match size_of::<T>() {
            2 => {
                let arguments = (count, cols, rows, from.cast(), to.cast());
                device.launch(&dense_rows::gather_rows::<f16>(), config, arguments)
            }
            4 => {
                let arguments = (count, cols, rows, from.cast(), to.cast());
                device.launch(&dense_rows::gather_rows::<u32>(), config, arguments)
            }
            _ => {
                let arguments = (count, cols, rows, from.cast(), to.cast());
                device.launch(&dense_rows::gather_rows::<f64>(), config, arguments)
            }
        }
    }
}
