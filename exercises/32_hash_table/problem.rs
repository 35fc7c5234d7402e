//! # 32: A hash table in shared memory
//!
//! A sparse product must find out which columns a row of the result has. A hash table in shared memory does that: a
//! column goes to slot `column % SLOTS`. If another column is there, it goes to the next slot that is free:
//!
//! ```text
//! slot      0    1    2    3   ..  255
//! columns   256  .    2    258 ..  255        258 wanted slot 2, which 2 has taken
//! ```
//!
//! A group has at most 128 columns, so an empty slot is always left, and each search ends.
//!
//! The threads of a block insert at the same time. In the kernel as delivered, two of them may find one slot empty,
//! and both write to it.
//!
//! Your task: take a slot with one atomic operation.
//!
//! The file as delivered fails with a "race on shared memory".

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// Slots of the table.
const SLOTS: usize = 256;

/// Marks an empty slot: there is no such column.
const EMPTY: u32 = u32::MAX;

/// Adds the number of different columns of group g to `distinct[g]`, a block for each group of 128 columns.
///
/// # Safety
///
/// `columns` holds `n` columns, `distinct` a zero for each group. Blocks have 128 threads.
#[kernel]
pub unsafe fn count_distinct(n: u32, columns: Global<u32>, distinct: GlobalMut<u32>) {
    let table = shared_array!(u32; SLOTS);
    let t = thread::thread_idx_x() as usize;
    let i = thread::index_1d() as usize;
    // SAFETY: `i` is less than `n` where a column is loaded, slots are below `SLOTS`, and each block has its element
    // of `distinct`. The barrier separates the empty table from insertions.
    unsafe {
        table.store(t, EMPTY);
        table.store(t + 128, EMPTY);
        thread::sync_threads();
        if i >= n as usize {
            return;
        }
        let column = columns.load(i);
        let mut slot = column as usize % SLOTS;
        loop {
            let old = table.load(slot);
            if old == EMPTY {
                table.store(slot, column);
                distinct.reduce_add(Scope::Device, thread::block_idx_x() as usize, 1);
            }
            if old == EMPTY || old == column {
                return;
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}
