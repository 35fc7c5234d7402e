//! The ladder of SpGEMM: hash tables, one warp for each row of C.
//!
//! A block is one warp and computes one row of C. A lane takes every 32nd nonzero of the row of A, and walks over the
//! whole row of B that the nonzero names. Two launches share this walk:
//!
//! - *Count*: a lane inserts columns into a hash table and counts the new ones. Shuffles add up the counts of the warp.
//! - *Fill*: a lane inserts columns and adds products to the values beside them. Then the warp writes the occupied
//!   slots to C in the order of the table, so rows come out unsorted.
//!
//! A table is filled by linear probing from slot `column mod slots`, with a compare-and-exchange for each probe. The
//! rungs differ in the size and the place of the tables. What a plan runs by default, the rest of this crate, continues
//! the last rung.
//!
//! Source: a course report on SpGEMM with hash tables; two phases as in nsparse (Nagasaka, Nukada and
//! Matsuoka, ICPP 2017).

use crate::products::hash_table::EMPTY;
use crate::products::operands::{Factors, OperandPatterns};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// The table of the rungs: one line each, and the file of the same name. Each file has its `SUMMARY`, its `PARENT`, and
/// its kernels; the host runs them.
macro_rules! rungs {
    ($($rung:ident = $file:ident,)*) => {
        $(pub mod $file;)*

        /// A rung of this ladder.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum SpgemmKernel {
            $(
                #[doc = concat!("See [`", stringify!($file), "`].")]
                $rung,
            )*
        }

        impl SpgemmKernel {
            /// All rungs, in the order of the ladder.
            pub const ALL: &[Self] = &[$(Self::$rung,)*];

            /// The name by which a user selects it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$rung => stringify!($file),)*
                }
            }

            /// What it does, in one line.
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$rung => $file::SUMMARY,)*
                }
            }

            /// The rung that it continues; none for the root.
            pub const fn parent(self) -> Option<Self> {
                match self {
                    $(Self::$rung => $file::PARENT,)*
                }
            }
        }
    };
}

rungs! {
    FixedTable = fixed_table,
    DynamicTable = dynamic_table,
    FittedTable = fitted_table,
    SplitTable = split_table,
}

/// The arrays of C that the kernels of the second launch fill.
#[repr(C)]
#[derive(KernelParam)]
pub struct Output<T> {
    /// The first entry of each row.
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

/// A table of values, in shared or in device memory.
///
/// Every function wants `slot` to be a slot of the table.
trait ValueTable<T: Real>: Copy {
    unsafe fn get(self, slot: u32) -> T;
    unsafe fn set(self, slot: u32, value: T);
    unsafe fn add(self, slot: u32, value: T);
}

/// A table of columns, in shared or in device memory.
///
/// Every function wants `slot` to be a slot of the table.
trait ColumnTable: Copy {
    unsafe fn get(self, slot: u32) -> u32;
    unsafe fn set(self, slot: u32, column: u32);
    unsafe fn exchange(self, slot: u32, column: u32) -> u32;
}

impl<T: Real> ValueTable<T> for Shared<T> {
    #[inline(always)]
    unsafe fn get(self, slot: u32) -> T {
        // SAFETY: the caller passes a slot of the table.
        unsafe { self.load(slot as usize) }
    }

    #[inline(always)]
    unsafe fn set(self, slot: u32, value: T) {
        // SAFETY: the caller passes a slot of the table.
        unsafe { self.store(slot as usize, value) }
    }

    #[inline(always)]
    unsafe fn add(self, slot: u32, value: T) {
        // SAFETY: the caller passes a slot of the table.
        unsafe { self.atomic_add(slot as usize, value) };
    }
}

impl<T: Real> ValueTable<T> for GlobalMut<T> {
    #[inline(always)]
    unsafe fn get(self, slot: u32) -> T {
        // SAFETY: the caller passes a slot of the table. The load is atomic because atomic additions bypass the L1
        // cache.
        unsafe { self.atomic_load(Scope::Device, slot as usize) }
    }

    #[inline(always)]
    unsafe fn set(self, slot: u32, value: T) {
        // SAFETY: the caller passes a slot of the table.
        unsafe { self.store(slot as usize, value) }
    }

    #[inline(always)]
    unsafe fn add(self, slot: u32, value: T) {
        // SAFETY: the caller passes a slot of the table.
        unsafe { self.reduce_add(Scope::Device, slot as usize, value) }
    }
}

impl ColumnTable for Shared<u32> {
    #[inline(always)]
    unsafe fn get(self, slot: u32) -> u32 {
        // SAFETY: the caller passes a slot of the table.
        unsafe { self.load(slot as usize) }
    }

    #[inline(always)]
    unsafe fn set(self, slot: u32, column: u32) {
        // SAFETY: the caller passes a slot of the table.
        unsafe { self.store(slot as usize, column) }
    }

    #[inline(always)]
    unsafe fn exchange(self, slot: u32, column: u32) -> u32 {
        // SAFETY: the caller passes a slot of the table.
        unsafe { self.atomic_compare_exchange(slot as usize, EMPTY, column) }
    }
}

impl ColumnTable for GlobalMut<u32> {
    #[inline(always)]
    unsafe fn get(self, slot: u32) -> u32 {
        // SAFETY: the caller passes a slot of the table. The load is atomic because atomic insertions bypass the L1
        // cache.
        unsafe { self.atomic_load(Scope::Device, slot as usize) }
    }

    #[inline(always)]
    unsafe fn set(self, slot: u32, column: u32) {
        // SAFETY: the caller passes a slot of the table.
        unsafe { self.store(slot as usize, column) }
    }

    #[inline(always)]
    unsafe fn exchange(self, slot: u32, column: u32) -> u32 {
        // SAFETY: the caller passes a slot of the table.
        unsafe { self.atomic_compare_exchange(Scope::Device, slot as usize, EMPTY, column) }
    }
}

/// Inserts a column by linear probing from slot `column mod slots`. Returns its slot and whether the column is new, or
/// `None` if the table is full.
///
/// # Safety
///
/// `table` has `slots` slots, a power of two, each [`EMPTY`] or a column.
#[inline(always)]
unsafe fn insert<C: ColumnTable>(table: C, slots: u32, column: u32) -> Option<(u32, bool)> {
    let mut slot = column & (slots - 1);
    for _ in 0..slots {
        // SAFETY: the mask keeps `slot` below `slots`.
        let old = unsafe { table.exchange(slot, column) };
        if old == EMPTY || old == column {
            return Some((slot, old == EMPTY));
        }
        slot = (slot + 1) & (slots - 1);
    }
    None
}

/// Counts the entries of a row by a warp. More than `slots` are counted as `slots + 1`.
///
/// # Safety
///
/// The operands are valid CSR matrices, the columns of A are rows of B, and `row` is a row of A. All lanes of a warp
/// call it. The table has `slots` slots, and only this warp uses it.
#[inline(always)]
unsafe fn count<C: ColumnTable>(operands: &OperandPatterns, row: u32, table: C, slots: u32) -> u32 {
    let lane = warp::lane_id();
    // SAFETY: `k` and `position` lie between two row pointers of A and B, and a column of A is a row of B. `sync_warp`
    // separates clearing the table from insertions.
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

/// Computes columns and values of a row by a warp, and writes them to C in the order of the slots.
///
/// # Safety
///
/// That of [`count`]. The tables have room for all entries of the row, and `output` has, too.
#[inline(always)]
unsafe fn fill<T: Real, C: ColumnTable, V: ValueTable<T>>(
    operands: &OperandPatterns,
    factors: &Factors<T>,
    row: u32,
    (table, sums): (C, V),
    slots: u32,
    output: &Output<T>,
) {
    let lane = warp::lane_id();
    // SAFETY: `k` and `position` lie between two row pointers of A and B, and a column of A is a row of B. `slot <
    // slots` wherever a slot is used. `sync_warp` separates clearing, adding and reading the tables. The occupied slots
    // are as many as the row has entries, so each `index` lies in the row.
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
                let index = (to + (taken & ((1 << lane) - 1)).count_ones()) as usize;
                output.col_idx.store(index, column);
                output.values.store(index, sums.get(slot));
            }
            to += taken.count_ones();
            first += WARP_SIZE;
        }
        warp::sync_warp(FULL_MASK);
    }
}

/// Empties a table.
///
/// # Safety
///
/// The table has `slots` slots. All lanes of a warp call it.
#[inline(always)]
unsafe fn clear<C: ColumnTable>(table: C, slots: u32) {
    let mut slot = warp::lane_id();
    while slot < slots {
        // SAFETY: `slot < slots` holds in the loop.
        unsafe { table.set(slot, EMPTY) };
        slot += WARP_SIZE;
    }
}

/// Stores the number of entries of a row, and raises `longest` to it.
///
/// # Safety
///
/// `entries` has an element `row`, and `longest` has one element.
#[inline(always)]
unsafe fn note(row: u32, count: u32, entries: GlobalMut<u32>, longest: GlobalMut<u32>) {
    if warp::lane_id() == 0 {
        // SAFETY: `row` is an element of `entries`, and `longest` has one element, by the contract.
        unsafe {
            entries.store(row as usize, count);
            longest.atomic_max(Scope::Device, 0, count);
        }
    }
}
