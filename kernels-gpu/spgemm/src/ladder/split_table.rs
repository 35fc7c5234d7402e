//! SpGEMM whose long rows have their hash tables in device memory.
//!
//! Short rows are computed as in `fitted_table`. For a longer row, the values of the table lie in device memory and its
//! columns in shared memory; for the longest rows both lie in device memory. A launch has at most 256 blocks of one
//! warp, each with one table in device memory. A block computes one row after the other.
//!
//! A product of a long row costs an atomic addition to device memory, and for the longest rows a compare-and-exchange
//! in device memory for each probed slot.
//!
//! New against `fitted_table`: no row is too long. A table of columns alone has two (f32) or three (f64) times as many
//! slots in the same shared memory.
//!
//! Where it loses: one warp computes a row of millions of products while the other warps have nothing to do. Probes of
//! a large table in device memory are scattered.
//!
//! Source: a course report on SpGEMM, which puts the values of long rows into device memory; nsparse (Nagasaka, Nukada
//! and Matsuoka, ICPP 2017) does so with whole tables.

use crate::ladder::{Output, count, fill, note};
use crate::products::operands::{Factors, OperandPatterns, RowList};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// What it does, in one line.
pub const SUMMARY: &str = "long rows' values, then whole tables, in device memory";

/// The rung that it continues.
pub const PARENT: Option<crate::ladder::SpgemmKernel> =
    Some(crate::ladder::SpgemmKernel::FittedTable);

/// The greatest number of blocks of a launch. Each has tables of its own in device memory.
pub const BLOCKS: u32 = 256;

/// The launch for `rows` rows. `slots` is the number of slots in shared memory, or 0.
pub fn launch(rows: u32, slots: u32) -> LaunchConfig {
    LaunchConfig::new(rows.min(BLOCKS), WARP_SIZE).shared_bytes(4 * slots)
}

/// Counts the entries of listed rows, with tables of `slots` slots in device memory.
///
/// # Safety
///
/// The operands and outputs are those of [`fitted_count`](crate::ladder::fitted_table::fitted_count). The launch may
/// have fewer blocks than items; `tables` has `slots` elements for each block.
#[kernel(name = "spgemm_device_count")]
pub unsafe fn device_count(
    operands: OperandPatterns,
    items: RowList,
    slots: u32,
    tables: GlobalMut<u32>,
    entries: GlobalMut<u32>,
    longest: GlobalMut<u32>,
) {
    let block = thread::block_idx_x();
    let table = tables.offset(block as usize * slots as usize);
    let mut item = block;
    while item < items.count {
        // SAFETY: `item < items.count`, and an item is a row of A. `table` starts at this block's own `slots` elements.
        unsafe {
            let [row, _] = items.load(item);
            note(row, count(&operands, row, table, slots), entries, longest);
            warp::sync_warp(warp::FULL_MASK);
        }
        item += thread::grid_dim_x();
    }
}

/// Computes columns and values of listed rows, unsorted. The table of values lies in device memory. The table of
/// columns lies in shared memory, or with `DEVICE` 1 in device memory.
///
/// # Safety
///
/// The operands and outputs are those of [`fitted_fill`](crate::ladder::fitted_table::fitted_fill). The launch may have
/// fewer blocks than items; `sums` has `slots` elements for each block, and with `DEVICE` 1 `tables` has as many.
#[kernel(name = "spgemm_split_fill", T = [f32], DEVICE = [0, 1])]
pub unsafe fn split_fill<T: Real, const DEVICE: u32>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
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
        // SAFETY: `item < items.count`, and an item is a row of A. `sums` and `tables` start at this block's own
        // `slots` elements; shared memory belongs to the block.
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
