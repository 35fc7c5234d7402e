//! SpGEMM with hash tables as small as the row allows.
//!
//! A kernel lists the rows by the size of table that they need, and each size has its own launch. A block is one warp
//! and computes one listed row, as in `fixed_table`. The size is the least power of two that is not below the number of
//! entries; before the entries are counted, the number of products takes its place.
//!
//! A product costs what it costs in `fixed_table`. A row costs a few more slots than it has entries, instead of 16,384.
//!
//! New against `dynamic_table`: a short row clears and sweeps few slots, and many of its blocks fit a multiprocessor.
//! Short rows are most rows of most matrices, so the gain is large.
//!
//! Where it loses: rows must be listed, twice. Products can be many more than entries, so the first table may be too
//! large. A row of more entries than the largest table is still refused.
//!
//! Source: rows grouped by size as in nsparse (Nagasaka, Nukada and Matsuoka, "High-Performance and Memory-Saving
//! Sparse General Matrix-Matrix Multiplication for NVIDIA Pascal GPU", ICPP 2017).

use crate::ladder::{Output, count, fill, note};
use crate::products::bins::WORK_WORDS;
use crate::products::bins::{BIN_BITS, BINS};
use crate::products::operands::{Factors, OperandPatterns, RowList};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// What it does, in one line.
pub const SUMMARY: &str = "hash tables as small as the row allows, rows listed by size";

/// The rung that it continues.
pub const PARENT: Option<crate::ladder::SpgemmKernel> =
    Some(crate::ladder::SpgemmKernel::DynamicTable);

/// Threads in a block of [`sizes`].
const BLOCK: u32 = 256;

/// Slots of the smallest table: one for each lane.
pub const LEAST_SLOTS: u32 = 32;

/// The launch of [`sizes`].
pub fn launch_sizes(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK), BLOCK)
}

/// The bin of rows whose tables have `slots` slots, a power of two. Bin 0 has the rows without entries.
pub const fn bin(slots: u32) -> u32 {
    1 + slots.ilog2()
}

/// Finds the bin of each row, and counts the rows of each bin; a thread has one row. The size of a row is its number
/// of products if `are_work` is not 0, else its number of entries.
///
/// # Safety
///
/// If `are_work` is not 0, `numbers` has [`WORK_WORDS`] numbers for each row; else it has the `rows + 1` row
/// pointers. `words` has an element for each row, and `counts` holds [`BINS`] zeros.
#[kernel(name = "spgemm_fitted_sizes")]
pub unsafe fn sizes(
    rows: u32,
    are_work: u32,
    numbers: Global<u32>,
    words: GlobalMut<u32>,
    counts: GlobalMut<u32>,
) {
    let row = thread::index_1d() as usize;
    if row >= rows as usize {
        return;
    }
    // SAFETY: `row < rows`, checked above. `bin` is below `BINS`, as asserted below.
    unsafe {
        let size = if are_work != 0 {
            // A row has no more entries than the span of its columns.
            let [products, _, span, _] = numbers.load4(WORK_WORDS * row);
            products.min(span)
        } else {
            numbers.load(row + 1) - numbers.load(row)
        };
        let bin = if size == 0 {
            0
        } else if size <= LEAST_SLOTS {
            bin(LEAST_SLOTS)
        } else {
            bin(size - 1) + 1
        };
        words.store(row, bin | 1 << BIN_BITS);
        counts.reduce_add(Scope::Device, bin as usize, 1);
    }
}

/// Counts the entries of listed rows, with tables of `slots` slots.
///
/// # Safety
///
/// That of [`dynamic_count`](crate::ladder::dynamic_table::dynamic_count). The items are rows of A, and the launch has
/// a block for each.
#[kernel(name = "spgemm_fitted_count")]
pub unsafe fn fitted_count(
    operands: OperandPatterns,
    items: RowList,
    slots: u32,
    entries: GlobalMut<u32>,
    longest: GlobalMut<u32>,
) {
    let table = shared::dynamic_shared_mem::<u32>();
    // SAFETY: the launch has one block for each item, an item is a row of A, and the block has the table for itself.
    unsafe {
        let [row, _] = items.load(thread::block_idx_x());
        note(row, count(&operands, row, table, slots), entries, longest);
    }
}

/// Computes columns and values of listed rows, unsorted.
///
/// # Safety
///
/// That of [`dynamic_fill`](crate::ladder::dynamic_table::dynamic_fill). The items are rows of up to `slots` entries,
/// and the launch has a block for each.
#[kernel(name = "spgemm_fitted_fill", T = [f32])]
pub unsafe fn fitted_fill<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    slots: u32,
    output: Output<T>,
) {
    let sums = shared::dynamic_shared_mem::<T>();
    let tables = (sums.offset(slots as usize).cast::<u32>(), sums);
    // SAFETY: the launch has one block for each item, an item is a row of A, and the block has the table for itself.
    unsafe {
        let [row, _] = items.load(thread::block_idx_x());
        fill(&operands, &factors, row, tables, slots, &output);
    }
}

const _: () = assert!(bin(1 << 31) < BINS);
