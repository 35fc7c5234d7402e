//! Hash tables of column indices in shared memory: open addressing, linear probing, insertion by compare-and-exchange.

use cuda_std::prelude::*;

/// A free slot: no matrix has that column.
pub const EMPTY: u32 = u32::MAX;

/// Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4): 2^32 over the golden ratio.
const MULTIPLIER: u32 = 0x9e37_79b9;

/// The slot at which the search for a column begins, in a table of a power of two of slots.
#[inline(always)]
fn first_slot(slots: u32, column: u32) -> u32 {
    column.wrapping_mul(MULTIPLIER) >> (slots.leading_zeros() + 1)
}

/// Puts a column into a table that has room for it.
///
/// # Safety
///
/// The table has `slots` slots, a power of two from 2 on, each [`EMPTY`] or a column, not all of them taken by other columns.
#[inline(always)]
pub unsafe fn insert(table: Shared<u32>, slots: u32, column: u32) {
    let mut slot = first_slot(slots, column);
    loop {
        // SAFETY: a slot of the table.
        let old = unsafe { table.atomic_compare_exchange(slot as usize, EMPTY, column) };
        if old == EMPTY || old == column {
            return;
        }
        slot = (slot + 1) & (slots - 1);
    }
}
