//! Two lanes find the same slot empty, and both insert.

use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// Slots of the table of a warp.
const SLOTS: usize = 256;

/// Marks an empty slot: there is no such column.
const EMPTY: u32 = u32::MAX;

/// The structure of a sparse matrix in CSR.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct Structure {
    /// Number of rows.
    pub rows: u32,
    /// For each row its first nonzero, and at last the number of all nonzeros.
    pub row_ptr: Global<u32>,
    /// The column of each nonzero.
    pub col_idx: Global<u32>,
}

/// Inserts a column into a table. Returns whether it is new.
///
/// # Safety
///
/// `table` has 256 slots, one of which is empty or has the column.
unsafe fn insert(table: Shared<u32>, column: u32) -> bool {
    let mut slot = column as usize % SLOTS;
    loop {
        let old = unsafe { table.load(slot) };
        if old == EMPTY {
            unsafe { table.store(slot, column) };
        }
        if old == EMPTY || old == column {
            return old == EMPTY;
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// `lengths[row]` = the number of nonzeros of the row of `A B`, one warp for each row.
///
/// # Safety
///
/// The pointers of `a` and `b` hold as many elements as their fields say; each column of `a` is a row of `b`. A row of
/// the product has at most 256 nonzeros. `lengths` holds `a.rows` elements. Blocks have 64 threads.
#[kernel]
pub unsafe fn row_lengths(a: Structure, b: Structure, lengths: GlobalMut<u32>) {
    let tables = shared_array!(u32; 2 * SLOTS);
    let row = (thread::index_1d() / 32) as usize;
    if row >= a.rows as usize {
        return;
    }
    let lane = warp::lane_id() as usize;
    let table = tables.offset(row % 2 * SLOTS);
    unsafe {
        for slot in (lane..SLOTS).step_by(32) {
            table.store(slot, EMPTY);
        }
        warp::sync_warp(FULL_MASK);
        let mut count = 0;
        for k in a.row_ptr.load(row)..a.row_ptr.load(row + 1) {
            let of_b = a.col_idx.load(k as usize) as usize;
            let (start, end) = (
                b.row_ptr.load(of_b) as usize,
                b.row_ptr.load(of_b + 1) as usize,
            );
            for j in (start + lane..end).step_by(32) {
                if insert(table, b.col_idx.load(j)) {
                    count += 1;
                }
            }
        }
        let count = warp::reduce_add(FULL_MASK, count);
        if lane == 0 {
            lengths.store(row, count);
        }
    }
}
