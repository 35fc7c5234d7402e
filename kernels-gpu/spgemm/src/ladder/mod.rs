//! The ladder to the last rung: hash tables, a warp a row, as a report on SpGEMM over several GPUs describes them.
//!
//! A block of one warp takes a row of C. Each lane takes nonzeros of the row of A in turn, and walks the whole row of B that
//! each names. Counting, a new column in the table adds one to the lane's count, and the warp adds up the counts by shuffles;
//! computing, the products are added to the values beside the columns, and the taken slots are written out in the order in
//! which they lie. So rows come out unsorted.
//!
//! | rung | what is new |
//! |---|---|
//! | [`fixed_table`] | tables of 2048 slots |
//! | [`dynamic_table`] | dynamic shared memory, up to what the device allows |
//! | [`fitted_table`] | rows listed by size, tables as small as the row allows |
//! | [`split_table`] | long rows' values, then whole tables, in device memory |

pub mod dynamic_table;
pub mod fitted_table;
pub mod fixed_table;
pub mod split_table;

use crate::products::operands::{Factors, Operands};
use crate::products::table::EMPTY;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Where a product's rows go: row pointers, and columns and values that they point into.
#[repr(C)]
pub struct Output<T> {
    /// The start of each row.
    pub row_ptr: Global<u32>,
    /// The column of each entry.
    pub col_idx: GlobalMut<u32>,
    /// The value of each entry.
    pub values: GlobalMut<T>,
}

impl<T> Clone for Output<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Output<T> {}

// SAFETY: `repr(C)`, of device pointers.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl<T: Element> KernelParam for Output<T> {}

/// Memory that values may be in: shared or the device's.
trait Sums<T: Real>: Copy {
    unsafe fn get(self, slot: u32) -> T;
    unsafe fn set(self, slot: u32, value: T);
    unsafe fn add(self, slot: u32, value: T);
}

/// Memory that columns may be in.
trait Columns: Copy {
    unsafe fn get(self, slot: u32) -> u32;
    unsafe fn set(self, slot: u32, column: u32);
    unsafe fn exchange(self, slot: u32, column: u32) -> u32;
}

impl<T: Real> Sums<T> for Shared<T> {
    #[inline(always)]
    unsafe fn get(self, slot: u32) -> T {
        // SAFETY: the caller's contract.
        unsafe { self.load(slot as usize) }
    }

    #[inline(always)]
    unsafe fn set(self, slot: u32, value: T) {
        // SAFETY: the caller's contract.
        unsafe { self.store(slot as usize, value) }
    }

    #[inline(always)]
    unsafe fn add(self, slot: u32, value: T) {
        // SAFETY: the caller's contract.
        unsafe { self.atomic_add(slot as usize, value) };
    }
}

impl<T: Real> Sums<T> for GlobalMut<T> {
    #[inline(always)]
    unsafe fn get(self, slot: u32) -> T {
        // SAFETY: the caller's contract. Past the cache, which the additions do not reach.
        unsafe { self.atomic_load(Scope::Device, slot as usize) }
    }

    #[inline(always)]
    unsafe fn set(self, slot: u32, value: T) {
        // SAFETY: the caller's contract.
        unsafe { self.store(slot as usize, value) }
    }

    #[inline(always)]
    unsafe fn add(self, slot: u32, value: T) {
        // SAFETY: the caller's contract.
        unsafe { self.reduce_add(Scope::Device, slot as usize, value) }
    }
}

impl Columns for Shared<u32> {
    #[inline(always)]
    unsafe fn get(self, slot: u32) -> u32 {
        // SAFETY: the caller's contract.
        unsafe { self.load(slot as usize) }
    }

    #[inline(always)]
    unsafe fn set(self, slot: u32, column: u32) {
        // SAFETY: the caller's contract.
        unsafe { self.store(slot as usize, column) }
    }

    #[inline(always)]
    unsafe fn exchange(self, slot: u32, column: u32) -> u32 {
        // SAFETY: the caller's contract.
        unsafe { self.atomic_compare_exchange(slot as usize, EMPTY, column) }
    }
}

impl Columns for GlobalMut<u32> {
    #[inline(always)]
    unsafe fn get(self, slot: u32) -> u32 {
        // SAFETY: the caller's contract. Past the cache, which the insertions do not reach.
        unsafe { self.atomic_load(Scope::Device, slot as usize) }
    }

    #[inline(always)]
    unsafe fn set(self, slot: u32, column: u32) {
        // SAFETY: the caller's contract.
        unsafe { self.store(slot as usize, column) }
    }

    #[inline(always)]
    unsafe fn exchange(self, slot: u32, column: u32) -> u32 {
        // SAFETY: the caller's contract.
        unsafe { self.atomic_compare_exchange(Scope::Device, slot as usize, EMPTY, column) }
    }
}

/// The slot of a column in a table of `slots`, a power of two, by linear probing from `column mod slots` on; whether it is new
/// there; `None` if the table is full.
#[inline(always)]
unsafe fn insert<C: Columns>(table: C, slots: u32, column: u32) -> Option<(u32, bool)> {
    let mut slot = column & (slots - 1);
    for _ in 0..slots {
        // SAFETY: a slot of the table.
        let old = unsafe { table.exchange(slot, column) };
        if old == EMPTY || old == column {
            return Some((slot, old == EMPTY));
        }
        slot = (slot + 1) & (slots - 1);
    }
    None
}

/// The entries of a row, counted by a warp; more than `slots` come out as `slots + 1`.
///
/// # Safety
///
/// The operands are what they say, `row` is one of A; the table has `slots` slots, for this warp alone.
#[inline(always)]
unsafe fn count<C: Columns>(operands: &Operands, row: u32, table: C, slots: u32) -> u32 {
    let lane = warp::lane_id();
    // SAFETY: rows of the matrices, slots of the table.
    unsafe {
        clear(table, slots);
        warp::sync_warp(FULL_MASK);
        let (start, end) = operands.a.row(row);
        let (mut new, mut full) = (0, false);
        let mut k = start + lane;
        while k < end && !full {
            let (b_start, b_end) = operands.b.row(operands.a.col_idx.load(k as usize));
            let mut position = b_start;
            while position < b_end && !full {
                match insert(table, slots, operands.b.col_idx.load(position as usize)) {
                    Some((_, is_new)) => new += u32::from(is_new),
                    None => full = true,
                }
                position += 1;
            }
            k += WARP_SIZE;
        }
        let mut distance = WARP_SIZE / 2;
        while distance > 0 {
            new += warp::shfl_xor(FULL_MASK, new, distance, WARP_SIZE);
            distance /= 2;
        }
        if warp::any(FULL_MASK, full) {
            slots + 1
        } else {
            new
        }
    }
}

/// Columns and values of a row, computed by a warp and written out in the order of the slots.
///
/// # Safety
///
/// As for [`count`]; the tables hold all entries of the row, `output` has room for them.
#[inline(always)]
unsafe fn fill<T: Real, C: Columns, V: Sums<T>>(
    operands: &Operands,
    factors: &Factors<T>,
    row: u32,
    (table, sums): (C, V),
    slots: u32,
    output: &Output<T>,
) {
    let lane = warp::lane_id();
    // SAFETY: rows of the matrices, slots of the tables; the warp synchronises between writes and reads.
    unsafe {
        clear(table, slots);
        let mut slot = lane;
        while slot < slots {
            sums.set(slot, T::ZERO);
            slot += WARP_SIZE;
        }
        warp::sync_warp(FULL_MASK);
        let (start, end) = operands.a.row(row);
        let mut k = start + lane;
        while k < end {
            let factor = factors.a.load(k as usize);
            let (b_start, b_end) = operands.b.row(operands.a.col_idx.load(k as usize));
            for position in b_start..b_end {
                let product = factor * factors.b.load(position as usize);
                let column = operands.b.col_idx.load(position as usize);
                if let Some((slot, _)) = insert(table, slots, column) {
                    sums.add(slot, product);
                }
            }
            k += WARP_SIZE;
        }
        warp::sync_warp(FULL_MASK);
        let mut to = output.row_ptr.load(row as usize);
        let mut first = 0;
        while first < slots {
            let slot = first + lane;
            let column = if slot < slots { table.get(slot) } else { EMPTY };
            let taken = warp::ballot(FULL_MASK, column != EMPTY);
            if column != EMPTY {
                let place = (to + (taken & ((1 << lane) - 1)).count_ones()) as usize;
                output.col_idx.store(place, column);
                output.values.store(place, sums.get(slot));
            }
            to += taken.count_ones();
            first += WARP_SIZE;
        }
        warp::sync_warp(FULL_MASK);
    }
}

/// Empties a table.
#[inline(always)]
unsafe fn clear<C: Columns>(table: C, slots: u32) {
    let mut slot = warp::lane_id();
    while slot < slots {
        // SAFETY: a slot of the table.
        unsafe { table.set(slot, EMPTY) };
        slot += WARP_SIZE;
    }
}

/// Notes a row's entries, and in `longest` their most.
#[inline(always)]
unsafe fn note(row: u32, count: u32, entries: GlobalMut<u32>, longest: GlobalMut<u32>) {
    if warp::lane_id() == 0 {
        // SAFETY: a number for each row, and one for all.
        unsafe {
            entries.store(row as usize, count);
            longest.atomic_max(Scope::Device, 0, count);
        }
    }
}
