//! Tables as small as the row allows: rows listed by size, a launch a size.
//!
//! Change from `dynamic_table`: a row's table has the least power of two of slots that is not below its entries, its products
//! while they are not counted yet. Short rows clear and sweep little, and many of their blocks fit a multiprocessor.

use crate::ladder::{Output, count, fill, note};
use crate::products::bins::WORK;
use crate::products::bins::{BIN_BITS, BINS};
use crate::products::operands::{Factors, Items, Operands};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// Threads in a block of [`sizes`].
const BLOCK: u32 = 256;

/// The least table: a slot a lane.
pub const LEAST_SLOTS: u32 = 32;

/// The launch of [`sizes`].
pub fn launch_sizes(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK), BLOCK)
}

/// The bin of rows whose tables have that many slots, a power of two: bin 0 is of rows without entries.
pub const fn bin(slots: u32) -> u32 {
    1 + slots.ilog2()
}

/// The bin of each row, a thread a row, by its entries, or by its products if `are_work` is not 0; and the rows of each bin.
///
/// # Safety
///
/// `numbers` are [`WORK`] numbers of work a row if `are_work` is not 0, else row pointers; `words` has a number for each row, `counts` holds
/// [`BINS`] zeros.
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
    // SAFETY: `row` is a row.
    unsafe {
        let size = if are_work != 0 {
            // No more entries than the span has columns.
            let [products, _, span, _] = numbers.load4(WORK * row);
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

/// The entries of listed rows, tables of `slots` slots.
///
/// # Safety
///
/// As for [`dynamic_count`](crate::ladder::dynamic_table::dynamic_count), the items rows of up to `slots` entries, a block each.
#[kernel(name = "spgemm_fitted_count")]
pub unsafe fn fitted_count(
    operands: Operands,
    items: Items,
    slots: u32,
    entries: GlobalMut<u32>,
    longest: GlobalMut<u32>,
) {
    let table = shared::dynamic_shared_mem::<u32>();
    // SAFETY: a block an item.
    unsafe {
        let [row, _] = items.load(thread::block_idx_x());
        note(row, count(&operands, row, table, slots), entries, longest);
    }
}

/// Columns and values of listed rows, unsorted.
///
/// # Safety
///
/// As for [`dynamic_fill`](crate::ladder::dynamic_table::dynamic_fill), the items rows of up to `slots` entries, a block each.
#[kernel(name = "spgemm_fitted_fill", T = [f32, f64])]
pub unsafe fn fitted_fill<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    slots: u32,
    output: Output<T>,
) {
    let sums = shared::dynamic_shared_mem::<T>();
    let tables = (sums.offset(slots as usize).cast::<u32>(), sums);
    // SAFETY: a block an item.
    unsafe {
        let [row, _] = items.load(thread::block_idx_x());
        fill(&operands, &factors, row, tables, slots, &output);
    }
}

const _: () = assert!(bin(1 << 31) < BINS);
