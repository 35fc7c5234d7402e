//! Leaving out the entries of a product whose value is zero.

use crate::csr::{DeviceCsr, DevicePattern};
use crate::operand::OperandError;
use crate::primitives::scan;
use crate::spgemm::options::SpgemmElement;
use std::sync::Arc;
use warprow_kernels::spgemm::numeric::drop_zeros::{count_nonzeros, keep_nonzeros, launch};

/// The matrix without its zero values.
pub fn keep<T: SpgemmElement>(c: &DeviceCsr<T>) -> Result<DeviceCsr<T>, OperandError> {
    let pattern = c.pattern();
    let DevicePattern {
        device, rows, cols, ..
    } = &**pattern;
    let structure = pattern.structure();
    let mut row_ptr = device.zeros::<u32>(*rows as usize + 1)?;
    if *rows > 0 {
        let arguments = (*rows, structure, c.values().read_only(), row_ptr.mutable());
        // SAFETY: `structure` and the values are those of a matrix of `rows` rows, and `row_ptr` has a number for each.
        unsafe { device.launch(&count_nonzeros::<T>(), launch(*rows), arguments)? };
    }
    let entries = scan::exclusive_scan(device, &mut row_ptr)? as usize;
    let mut col_idx = device.uninitialized::<u32>(entries)?;
    let mut values = device.uninitialized::<T>(entries)?;
    if entries > 0 {
        let arguments = (
            *rows,
            structure,
            c.values().read_only(),
            row_ptr.read_only(),
            col_idx.mutable(),
            values.mutable(),
        );
        // SAFETY: as for `count_nonzeros`; the scan of its counts gives each row its room in `col_idx` and `values`.
        unsafe { device.launch(&keep_nonzeros::<T>(), launch(*rows), arguments)? };
    }
    let kept = DevicePattern {
        device: device.clone(),
        rows: *rows,
        cols: *cols,
        row_ptr,
        col_idx,
        longest_row: None,
    };
    Ok(DeviceCsr::from_parts(Arc::new(kept), values))
}
