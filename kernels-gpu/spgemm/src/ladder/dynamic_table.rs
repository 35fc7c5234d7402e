//! SpGEMM with hash tables as large as the device allows, in dynamic shared memory.
//!
//! A block is one warp and computes one row of C, as in `fixed_table`. The launch fixes the number of slots, the same
//! for all rows: the greatest power of two that fits the shared memory of a block.
//!
//! A product costs what it costs in `fixed_table`. A row costs as many cleared and swept slots as the table has.
//!
//! New against `fixed_table`: a kernel may have 48 KiB of static shared memory, but more than that if the launch asks
//! for it. A row of C may then have 16,384 entries on an H200.
//!
//! Where it loses: one to three warps occupy a whole multiprocessor, and every row clears and sweeps 16,384 slots. So
//! this rung is slower than its parent where both can run. What it gains is longer rows.
//!
//! Source: a course report on SpGEMM, which raises the limit from 48 to 64 KiB for the same reason.

use crate::ladder::{Output, count, fill, note};
use crate::products::operands::{Factors, OperandPatterns};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// What it does, in one line.
pub const SUMMARY: &str = "hash tables of all shared memory that the device allows";

/// The rung that it continues.
pub const PARENT: Option<crate::ladder::SpgemmKernel> =
    Some(crate::ladder::SpgemmKernel::FixedTable);

/// The slots of the largest table that fits `shared_bytes`, with values of `element_bytes` bytes: a power of two.
pub fn slots(shared_bytes: u32, element_bytes: u32) -> u32 {
    1 << (shared_bytes / (4 + element_bytes)).ilog2()
}

/// A launch with a block of one warp for each row, and tables of `slots` slots with values of `element_bytes` bytes.
pub fn launch(rows: u32, slots: u32, element_bytes: u32) -> LaunchConfig {
    LaunchConfig::new(rows, WARP_SIZE).shared_bytes(slots * (4 + element_bytes))
}

/// Counts the entries of each row, and finds the greatest count in `longest`. More than `slots` are counted as `slots +
/// 1`.
///
/// # Safety
///
/// The operands are valid CSR matrices, and the columns of A are rows of B. `entries` has an element for each row of A,
/// and `longest` is zero. The launch is that of [`launch`].
#[kernel(name = "spgemm_dynamic_count")]
pub unsafe fn dynamic_count(
    operands: OperandPatterns,
    slots: u32,
    entries: GlobalMut<u32>,
    longest: GlobalMut<u32>,
) {
    let table = shared::dynamic_shared_mem::<u32>();
    let row = thread::block_idx_x();
    // SAFETY: the launch has one block for each row of A, and the block has the table for itself.
    unsafe { note(row, count(&operands, row, table, slots), entries, longest) };
}

/// Computes columns and values of each row, unsorted.
///
/// # Safety
///
/// That of [`dynamic_count`]. No row has more than `slots` entries, and `output` has room for all entries.
#[kernel(name = "spgemm_dynamic_fill", T = [f32])]
pub unsafe fn dynamic_fill<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    slots: u32,
    output: Output<T>,
) {
    let sums = shared::dynamic_shared_mem::<T>();
    let tables = (sums.offset(slots as usize).cast::<u32>(), sums);
    let row = thread::block_idx_x();
    // SAFETY: the launch has one block for each row of A, and the block has the table for itself.
    unsafe { fill(&operands, &factors, row, tables, slots, &output) };
}
