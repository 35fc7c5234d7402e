//! Long rows apart: columns in shared memory and values in device memory, then both in device memory.
//!
//! Change from `fitted_table`: no row is too long. A table of columns alone may have twice or three times the slots of one with
//! values, and where that is not enough a warp works in a table of device memory, one for each block of the launch, which
//! takes row after row.

use crate::ladder::{Output, count, fill, note};
use crate::products::operands::{Factors, Items, Operands};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Blocks of a launch, at most, each with tables of its own in device memory.
pub const BLOCKS: u32 = 256;

/// The launch for that many rows; with `slots` slots for columns in shared memory, or 0.
pub fn launch(rows: u32, slots: u32) -> LaunchConfig {
    LaunchConfig::new(rows.min(BLOCKS), WARP_SIZE).shared_bytes(4 * slots)
}

/// The entries of listed rows, tables of `slots` slots in device memory.
///
/// # Safety
///
/// As for [`fitted_count`](crate::ladder::fitted_table::fitted_count); `tables` has `slots` numbers for each block.
#[kernel(name = "spgemm_device_count")]
pub unsafe fn device_count(
    operands: Operands,
    items: Items,
    slots: u32,
    tables: GlobalMut<u32>,
    entries: GlobalMut<u32>,
    longest: GlobalMut<u32>,
) {
    let block = thread::block_idx_x();
    let table = tables.offset(block as usize * slots as usize);
    let mut item = block;
    while item < items.count {
        // SAFETY: an item, and the block's own table.
        unsafe {
            let [row, _] = items.load(item);
            note(row, count(&operands, row, table, slots), entries, longest);
            warp::sync_warp(warp::FULL_MASK);
        }
        item += thread::grid_dim_x();
    }
}

/// Columns and values of listed rows, unsorted; the columns' tables in shared memory, or with `DEVICE` 1 in device memory as
/// the values.
///
/// # Safety
///
/// As for [`fitted_fill`](crate::ladder::fitted_table::fitted_fill); `sums`, and `tables` if they are used, have `slots` elements for
/// each block.
#[kernel(name = "spgemm_split_fill", T = [f32, f64], DEVICE = [0, 1])]
pub unsafe fn split_fill<T: Real, const DEVICE: u32>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    slots: u32,
    tables: GlobalMut<u32>,
    sums: GlobalMut<T>,
    output: Output<T>,
) {
    let block = thread::block_idx_x();
    let own = block as usize * slots as usize;
    let sums = sums.offset(own);
    let mut item = block;
    while item < items.count {
        // SAFETY: an item, and the block's own tables.
        unsafe {
            let [row, _] = items.load(item);
            if DEVICE == 1 {
                let tables = (tables.offset(own), sums);
                fill(&operands, &factors, row, tables, slots, &output);
            } else {
                let tables = (shared::dynamic_shared_mem::<u32>(), sums);
                fill(&operands, &factors, row, tables, slots, &output);
            }
        }
        item += thread::grid_dim_x();
    }
}
