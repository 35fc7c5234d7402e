//! Dynamic shared memory: tables as large as the device allows, beyond the 48 KiB that every kernel may have.
//!
//! Change from `fixed_table`: the size of the tables comes with the launch. Rows of 16384 entries pass on an H200, and
//! every row now clears and sweeps tables for so many, one warp a multiprocessor.

use crate::ladder::{Output, count, fill, note};
use crate::products::operands::{Factors, Operands};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// The slots of a table in so much shared memory, beside values of `element_bytes` bytes: a power of two.
pub fn slots(shared_bytes: u32, element_bytes: u32) -> u32 {
    1 << (shared_bytes / (4 + element_bytes)).ilog2()
}

/// The launch of these kernels, a warp a row, with tables of `slots` slots beside values of `element_bytes` bytes.
pub fn launch(rows: u32, slots: u32, element_bytes: u32) -> LaunchConfig {
    LaunchConfig::new(rows, WARP_SIZE).shared_bytes(slots * (4 + element_bytes))
}

/// The entries of each row, `slots + 1` where there are more than `slots`, and the most of them.
///
/// # Safety
///
/// The operands are what they say; `entries` has a number for each row, `longest` is zero. The launch is [`launch`]'s.
#[kernel(name = "spgemm_dynamic_count")]
pub unsafe fn dynamic_count(
    operands: Operands,
    slots: u32,
    entries: GlobalMut<u32>,
    longest: GlobalMut<u32>,
) {
    let table = shared::dynamic_shared_mem::<u32>();
    let row = thread::block_idx_x();
    // SAFETY: a block a row.
    unsafe { note(row, count(&operands, row, table, slots), entries, longest) };
}

/// Columns and values of each row, unsorted.
///
/// # Safety
///
/// As for [`dynamic_count`]; no row has more than `slots` entries, `output` has room for them.
#[kernel(name = "spgemm_dynamic_fill", T = [f32, f64])]
pub unsafe fn dynamic_fill<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    slots: u32,
    output: Output<T>,
) {
    let sums = shared::dynamic_shared_mem::<T>();
    let tables = (sums.offset(slots as usize).cast::<u32>(), sums);
    let row = thread::block_idx_x();
    // SAFETY: a block a row.
    unsafe { fill(&operands, &factors, row, tables, slots, &output) };
}
