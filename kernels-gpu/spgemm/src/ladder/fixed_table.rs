//! The first rung: a warp a row, a table of 2048 slots in shared memory, linear probing, insertion by compare-and-exchange.
//!
//! Rows of more than 2048 entries are refused; a row of ten entries clears and sweeps 2048 slots too, and tables of that size
//! keep a multiprocessor at a dozen warps of the 64 that it could run.

use crate::ladder::{Output, count, fill, note};
use crate::products::operands::{Factors, Operands};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Slots of a table: the most entries that a row may have.
pub const SLOTS: u32 = 2048;

/// The launch of these kernels, a warp a row.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows, WARP_SIZE)
}

/// The entries of each row, [`SLOTS`]` + 1` where there are more than [`SLOTS`], and the most of them.
///
/// # Safety
///
/// The operands are what they say; `entries` has a number for each row, `longest` is zero.
#[kernel(name = "spgemm_fixed_count")]
pub unsafe fn fixed_count(operands: Operands, entries: GlobalMut<u32>, longest: GlobalMut<u32>) {
    let table = shared_array!(u32; 2048);
    let row = thread::block_idx_x();
    // SAFETY: a block a row.
    unsafe { note(row, count(&operands, row, table, SLOTS), entries, longest) };
}

/// Columns and values of each row, unsorted.
///
/// # Safety
///
/// As for [`fixed_count`]; no row has more than [`SLOTS`] entries, `output` has room for them.
#[kernel(name = "spgemm_fixed_fill", T = [f32, f64])]
pub unsafe fn fixed_fill<T: Real>(operands: Operands, factors: Factors<T>, output: Output<T>) {
    let tables = (shared_array!(u32; 2048), shared_array!(T; 2048));
    let row = thread::block_idx_x();
    // SAFETY: a block a row.
    unsafe { fill(&operands, &factors, row, tables, SLOTS, &output) };
}
