//! A hash table of column indices in shared memory: open addressing, linear probing, insertion by
//! compare-and-exchange.

use cuda_std::prelude::*;

/// Marks a free slot: no matrix has this column.
pub const EMPTY: u32 = u32::MAX;

/// 2^32 over the golden ratio, for Fibonacci hashing (Knuth, The Art of Computer Programming,
/// volume 3, section 6.4).
const MULTIPLIER: u32 = 0x9e37_79b9;

/// The slot at which the search for a column begins. The table has `slots` slots, a power of two.
#[inline(always)]
fn first_slot(slots: u32, column: u32) -> u32 {
    column.wrapping_mul(MULTIPLIER) >> (slots.leading_zeros() + 1)
}

/// Inserts a column, unless the table has it.
///
/// # Safety
///
/// The table has `slots` slots, a power of two from 2 on. Each is [`EMPTY`] or holds a column, and
/// at least one is empty or holds this column; otherwise the search never ends.
#[inline(always)]
pub unsafe fn insert(table: Shared<u32>, slots: u32, column: u32) {
    let mut slot = first_slot(slots, column);
    loop {
        // SAFETY: `first_slot` is below `slots`, and the mask keeps `slot` there.
        let old = unsafe { table.atomic_compare_exchange(slot as usize, EMPTY, column) };
        if old == EMPTY || old == column {
            return;
        }
        slot = (slot + 1) & (slots - 1);
    }
}
