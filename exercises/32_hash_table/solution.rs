//! A compare-and-exchange takes an empty slot for one thread alone.

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
            let old = table.atomic_compare_exchange(slot, EMPTY, column);
            if old == EMPTY {
                distinct.reduce_add(Scope::Device, thread::block_idx_x() as usize, 1);
            }
            if old == EMPTY || old == column {
                return;
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}
