//! A matrix in blocks of columns: see [`column_blocks`].

use crate::csr::{DeviceCsr, DevicePattern};
use crate::error::Error;
use crate::scan::exclusive_scan;
use cuda_std::element::Element;
use warprow_kernels::spmm::product::column_blocks;

/// The matrix with its nonzeros in the order of `blocks` blocks of columns: the row pointers of one block after the other, each
/// of which starts where the one before ends, `blocks * rows + 1` numbers in all.
///
/// # Errors
///
/// 2^32 rows of blocks or more; too little device memory; the driver's.
pub(super) fn cut<T: Element>(a: DeviceCsr<T>, blocks: u32) -> Result<DeviceCsr<T>, Error> {
    let (device, pattern) = (a.device(), a.pattern());
    let (rows, cols) = (pattern.rows, pattern.cols);
    if blocks == 1 || rows == 0 {
        return Ok(a);
    }
    let starts = u64::from(rows) * u64::from(blocks);
    let starts = u32::try_from(starts).map_err(|_| Error::TooLarge {
        what: "the number of rows of all blocks of columns",
        found: starts.into(),
        most: u32::MAX.into(),
    })?;
    let mut row_ptr = device.zeros::<u32>(starts as usize + 1)?;
    let mut col_idx = device.uninitialized::<u32>(pattern.nnz())?;
    let mut values = device.uninitialized::<T>(pattern.nnz())?;
    // SAFETY: the buffers have the lengths that the kernels' contracts ask for, and a row's columns ascend.
    unsafe {
        let (old_row_ptr, old_col_idx) = (pattern.row_ptr.read_only(), pattern.col_idx.read_only());
        let config = column_blocks::launch_lengths(rows, blocks);
        let width = cols.div_ceil(blocks);
        let arguments = (rows, old_row_ptr, old_col_idx, width, row_ptr.mutable());
        device.launch(&column_blocks::lengths(), config, arguments)?;
        exclusive_scan(device, &mut row_ptr)?;
        let arguments = (
            rows,
            blocks,
            old_row_ptr,
            old_col_idx,
            a.values().read_only(),
            row_ptr.read_only(),
            col_idx.mutable(),
            values.mutable(),
        );
        let config = column_blocks::launch_copy(rows);
        device.launch(&column_blocks::copy::<T>(), config, arguments)?;
    }
    let cut = DevicePattern {
        device: device.clone(),
        rows,
        cols,
        row_ptr,
        col_idx,
        longest_row: None,
    };
    Ok(DeviceCsr::from_parts(cut, values))
}
