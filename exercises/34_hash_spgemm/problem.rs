//! # 34: Hash SpGEMM
//!
//! The symbolic phase (exercise 33) has counted the nonzeros of each row of C, and a scan (exercise 19) has turned the
//! counts into row pointers. Now the numeric phase computes columns and values. A warp computes a row:
//!
//! 1. It empties its hash table, which holds columns and sums.
//! 2. For each nonzero of the row of A, its lanes go through a row of B. A lane adds each product to its column's sum.
//! 3. It writes columns and sums to C.
//!
//! ```text
//! table of the warp    slot      0     1     2     3     4     5     6     7     (8 slots here, 256 in the kernel)
//!                      column   64     9     .     .    12     .     .     7
//!                      sum       3     1     .     .     5     .     .     8
//! row of C             columns   7 9 12 64      values   8 1 5 3
//! ```
//!
//! In CSR, the columns of a row are sorted. The table has few columns, so there is a simple way: a column's place in
//! its row is the number of columns in the table that are less. It does not depend on the order in which lanes insert.
//!
//! The kernel as delivered inserts the columns, and writes them in the order of the slots. It computes no values.
//!
//! Your task: add up the values, and write both in the right order.
//!
//! The file as delivered fails with "c.col_idx[0] is" and a wrong number.

use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// Slots of the table of a warp.
const SLOTS: usize = 256;

/// Marks an empty slot: there is no such column.
const EMPTY: u32 = u32::MAX;

/// A sparse matrix in CSR.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct Csr {
    /// Number of rows.
    pub rows: u32,
    /// For each row its first nonzero, and at last the number of all nonzeros.
    pub row_ptr: Global<u32>,
    /// The column of each nonzero.
    pub col_idx: Global<u32>,
    /// The value of each nonzero.
    pub values: Global<f32>,
}

/// A sparse product in CSR. The lengths of its rows are known, its columns and values are not.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct Product {
    /// For each row its first nonzero.
    pub row_ptr: Global<u32>,
    /// The column of each nonzero; they rise within a row.
    pub col_idx: GlobalMut<u32>,
    /// The value of each nonzero.
    pub values: GlobalMut<f32>,
}

/// Inserts a column into a table, if it is not there. Returns its slot.
///
/// # Safety
///
/// `table` has 256 slots, one of which is empty or has the column.
unsafe fn insert(table: Shared<u32>, column: u32) -> usize {
    let mut slot = column as usize % SLOTS;
    loop {
        // SAFETY: `slot` is less than 256.
        let old = unsafe { table.atomic_compare_exchange(slot, EMPTY, column) };
        if old == EMPTY || old == column {
            return slot;
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// `C = A B`, one warp for each row.
///
/// # Safety
///
/// The pointers of `a` and `b` hold as many elements as their fields say; each column of `a` is a row of `b`. A row of
/// the product has at most 256 nonzeros, and `c` has room for them. Blocks have 64 threads.
#[kernel]
pub unsafe fn spgemm(a: Csr, b: Csr, c: Product) {
    let tables = shared_array!(u32; 2 * SLOTS);
    let row = (thread::index_1d() / 32) as usize;
    if row >= a.rows as usize {
        return;
    }
    let lane = warp::lane_id() as usize;
    let table = tables.offset(row % 2 * SLOTS);
    // SAFETY: `row` is less than `a.rows`, and columns of `a` are rows of `b`. The warp has a table of its own.
    // Barriers separate the empty table, the insertions, and the output. Each column has a place of its own.
    unsafe {
        for slot in (lane..SLOTS).step_by(32) {
            table.store(slot, EMPTY);
        }
        warp::sync_warp(FULL_MASK);
        for k in a.row_ptr.load(row)..a.row_ptr.load(row + 1) {
            let of_b = a.col_idx.load(k as usize) as usize;
            let (start, end) = (
                b.row_ptr.load(of_b) as usize,
                b.row_ptr.load(of_b + 1) as usize,
            );
            for j in (start + lane..end).step_by(32) {
                insert(table, b.col_idx.load(j));
            }
        }
        warp::sync_warp(FULL_MASK);
        let first = c.row_ptr.load(row) as usize;
        for slot in (lane..SLOTS).step_by(32) {
            let column = table.load(slot);
            if column != EMPTY {
                let place = first
                    + (0..slot)
                        .filter(|&other| table.load(other) != EMPTY)
                        .count();
                c.col_idx.store(place, column);
                c.values.store(place, 0.0);
            }
        }
    }
}
