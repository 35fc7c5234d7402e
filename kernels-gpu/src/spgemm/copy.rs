//! Rows of C brought to their places: from where they were put aside, or, of one nonzero of A, from the row of B.
//!
//! A block takes 2048 entries of C that follow each other, whatever their rows, so that all lanes have the same work and what is
//! written is one piece; it looks up the rows' ends in shared memory.

use super::bins::{BIN_BITS, Known, symbolic};
use super::operands::{Factors, Items, Operands, Structure};
use super::team::Team;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 256;

/// Entries of C that a block takes.
const TILE: u32 = 2048;

/// Rows whose ends a block has in shared memory at a time.
const ROWS: u32 = 512;

/// Entries of a thread whose loads are in flight together.
const UNROLL: usize = 4;

/// The launch of [`copy_columns`] and [`copy_entries`] for that many entries.
pub fn launch_tiles(entries: u32) -> LaunchConfig {
    LaunchConfig::new(entries.div_ceil(TILE), BLOCK)
}

/// The launch of [`copy_products`] for that many rows, a warp each.
pub fn launch_products(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// The values of rows of one nonzero of A: those of the row of B, multiplied; and their columns, if they are wanted. A warp a row.
///
/// # Safety
///
/// The operands are what they say; the items are rows with one nonzero in A; `c` is the product's structure, `values` its
/// values.
#[kernel(name = "spgemm_copy_products", T = [f32, f64])]
pub unsafe fn copy_products<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    c: Structure,
    values: GlobalMut<T>,
) {
    let team = Team::<false>;
    if team.index() >= items.count {
        return;
    }
    // SAFETY: rows of the matrices.
    unsafe {
        let [row, _] = items.load(team.index());
        let k = operands.a.row_ptr.load(row as usize) as usize;
        let factor = factors.a.load(k);
        let [start, end] = operands
            .extents
            .load2(4 * operands.a.col_idx.load(k) as usize);
        let to = c.row_ptr.load(row as usize);
        let mut p = team.thread();
        while p < end - start {
            let value = factor * factors.b.load((start + p) as usize);
            values.store((to + p) as usize, value);
            if c.wants_columns() {
                c.put(to + p, operands.b.col_idx.load((start + p) as usize));
            }
            p += WARP_SIZE;
        }
    }
}

/// What has been put aside: each row from its start on.
#[repr(C)]
pub struct Aside<T> {
    /// Where each row starts.
    pub starts: Global<u32>,
    /// The columns.
    pub columns: Global<u32>,
    /// The values of sorted rows; not read if they are not known.
    pub values: Global<T>,
}

impl<T> Clone for Aside<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Aside<T> {}

// SAFETY: `repr(C)`, of device pointers.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl<T: Element> KernelParam for Aside<T> {}

/// The columns of all rows to their places in C; a block 2048 entries.
///
/// # Safety
///
/// The operands are what they say; `row_words` is `row_work`'s, `aside` has the columns of each row but those of one nonzero
/// of A, `row_ptr` says where they belong in `col_idx`.
#[kernel(name = "spgemm_copy_columns")]
pub unsafe fn copy_columns(
    operands: Operands,
    row_words: Global<u32>,
    aside: Aside<f32>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
) {
    let factors = Factors {
        a: Global::from_address(0),
        b: Global::from_address(0),
    };
    let values = GlobalMut::from_address(0);
    let tile = Tile {
        operands,
        factors,
        row_words,
        aside,
        row_ptr,
    };
    // SAFETY: the caller's contract.
    unsafe { tile.copy::<false>(Known::NONE, col_idx, values) };
}

/// The columns of all rows to their places in C, and the values that are known; a block 2048 entries.
///
/// # Safety
///
/// As for [`copy_columns`], and `aside` has the values of sorted rows if they are known.
#[kernel(name = "spgemm_copy_entries", T = [f32, f64])]
pub unsafe fn copy_entries<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    row_words: Global<u32>,
    known: Known,
    aside: Aside<T>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
    values: GlobalMut<T>,
) {
    let tile = Tile {
        operands,
        factors,
        row_words,
        aside,
        row_ptr,
    };
    // SAFETY: the caller's contract.
    unsafe { tile.copy::<true>(known, col_idx, values) };
}

/// Where the entries of a row come from.
mod source {
    /// Columns that were put aside.
    pub const COLUMNS: u32 = 0;
    /// Columns and values that were put aside.
    pub const ENTRIES: u32 = 1;
    /// A row of B.
    pub const ROW_OF_B: u32 = 2;
}

/// Rows that a block has in shared memory.
#[derive(Clone, Copy)]
struct Rows<T> {
    /// The first entry of each.
    firsts: Shared<u32>,
    /// How much farther on its source starts.
    offsets: Shared<u32>,
    /// What that is.
    sources: Shared<u32>,
    /// What its values are to be multiplied by, if it is a row of B.
    factors: Shared<T>,
}

/// What a block copies from.
struct Tile<T> {
    operands: Operands,
    factors: Factors<T>,
    row_words: Global<u32>,
    aside: Aside<T>,
    row_ptr: Global<u32>,
}

impl<T: Real> Tile<T> {
    /// Copies the block's entries.
    #[inline(always)]
    unsafe fn copy<const VALUES: bool>(
        &self,
        known: Known,
        col_idx: GlobalMut<u32>,
        values: GlobalMut<T>,
    ) {
        let ends = shared_array!(u32; 2);
        let rows_here = Rows {
            firsts: shared_array!(u32; 512),
            offsets: shared_array!(u32; 512),
            sources: shared_array!(u32; 512),
            factors: shared_array!(T; 512),
        };
        let t = thread::thread_idx_x();
        let warp = t / WARP_SIZE;
        // SAFETY: rows and entries of C; the block synchronises between writes and reads of what is shared.
        unsafe {
            let entries = self.row_ptr.load(self.operands.a.rows as usize);
            let tile_start = thread::block_idx_x() * TILE;
            let tile_end = tile_start + (entries - tile_start).min(TILE);
            if warp < 2 {
                let entry = if warp == 0 { tile_start } else { tile_end - 1 };
                let row = self.row_of(entry);
                if warp::lane_id() == 0 {
                    ends.store(warp as usize, row);
                }
            }
            thread::sync_threads();
            let (mut row, last_row) = (ends.load(0), ends.load(1));
            let mut start = tile_start;
            while start < tile_end {
                let rows = (last_row - row + 1).min(ROWS);
                let mut i = t;
                while i < rows {
                    let first = self.row_ptr.load((row + i) as usize);
                    let (source, from, factor) = self.source::<VALUES>(row + i, known);
                    rows_here.firsts.store(i as usize, first);
                    let offset = from.wrapping_sub(first);
                    rows_here.offsets.store(i as usize, offset);
                    rows_here.sources.store(i as usize, source);
                    if VALUES {
                        rows_here.factors.store(i as usize, factor);
                    }
                    i += BLOCK;
                }
                thread::sync_threads();
                let end = tile_end.min(self.row_ptr.load((row + rows) as usize));
                let mut entry = start + t;
                while entry < end {
                    self.copy_some::<VALUES>(rows_here, rows, entry, end, col_idx, values);
                    entry = entry.saturating_add(UNROLL as u32 * BLOCK);
                }
                thread::sync_threads();
                start = end;
                row += rows;
            }
        }
    }

    /// Copies some entries 256 apart, from `first` on and before `end`. Past the end the last one is loaded again.
    #[inline(always)]
    unsafe fn copy_some<const VALUES: bool>(
        &self,
        rows_here: Rows<T>,
        rows: u32,
        first: u32,
        end: u32,
        col_idx: GlobalMut<u32>,
        values: GlobalMut<T>,
    ) {
        let entries: [u32; UNROLL] =
            array::from_fn(|u| first.saturating_add(u as u32 * BLOCK).min(end - 1));
        // SAFETY: entries of these rows.
        unsafe {
            let places = places(rows_here.firsts, rows, entries);
            let sources: [u32; UNROLL] = array::from_fn(|u| rows_here.sources.load(places[u]));
            let from: [usize; UNROLL] = array::from_fn(|u| {
                let offset = rows_here.offsets.load(places[u]);
                entries[u].wrapping_add(offset) as usize
            });
            let columns: [u32; UNROLL] = array::from_fn(|u| {
                let columns = if sources[u] == source::ROW_OF_B {
                    self.operands.b.col_idx
                } else {
                    self.aside.columns
                };
                columns.load(from[u])
            });
            let known: [T; UNROLL] = array::from_fn(|u| {
                if !VALUES || sources[u] == source::COLUMNS {
                    return T::ZERO;
                }
                let values = if sources[u] == source::ROW_OF_B {
                    self.factors.b
                } else {
                    self.aside.values
                };
                values.load(from[u])
            });
            #[allow(
                clippy::needless_range_loop,
                reason = "iterators over the arrays are not unrolled, and put them into local memory"
            )]
            for u in 0..UNROLL {
                if u as u32 * BLOCK >= end - first {
                    break;
                }
                let entry = entries[u] as usize;
                col_idx.store(entry, columns[u]);
                if VALUES && sources[u] == source::ROW_OF_B {
                    values.store(entry, rows_here.factors.load(places[u]) * known[u]);
                } else if VALUES && sources[u] == source::ENTRIES {
                    values.store(entry, known[u]);
                }
            }
        }
    }

    /// Where a row comes from, where that starts, and the factor of its values.
    #[inline(always)]
    unsafe fn source<const VALUES: bool>(&self, row: u32, known: Known) -> (u32, u32, T) {
        // SAFETY: a row of C; if its bin says so, with one nonzero in A.
        unsafe {
            let bin = self.row_words.load(row as usize) & ((1 << BIN_BITS) - 1);
            if bin == symbolic::COPY {
                let k = self.operands.a.row_ptr.load(row as usize) as usize;
                let column = self.operands.a.col_idx.load(k) as usize;
                let start = self.operands.extents.load(4 * column);
                let factor = if VALUES {
                    self.factors.a.load(k)
                } else {
                    T::ZERO
                };
                return (source::ROW_OF_B, start, factor);
            }
            let source = if known.has(bin) {
                source::ENTRIES
            } else {
                source::COLUMNS
            };
            (source, self.aside.starts.load(row as usize), T::ZERO)
        }
    }

    /// The row of an entry: the last one that starts with it or before. The whole warp searches, 33 parts at a time.
    #[inline(always)]
    unsafe fn row_of(&self, entry: u32) -> u32 {
        let lane = warp::lane_id();
        let mut row = 0;
        let mut rows = self.operands.a.rows;
        while rows > 1 {
            let part = rows.div_ceil(WARP_SIZE + 1);
            // Its product is below 2^32, as the parts are at most 33.
            let ahead = u64::from(part) * u64::from(lane + 1);
            // SAFETY: a row of C.
            let is_before = ahead < u64::from(rows)
                && unsafe { self.row_ptr.load(row as usize + ahead as usize) } <= entry;
            let skipped = warp::ballot(FULL_MASK, is_before).count_ones() * part;
            row += skipped;
            rows = part.min(rows - skipped);
        }
        row
    }
}

/// Of each entry the last of the `rows` rows that starts with it or before.
#[inline(always)]
unsafe fn places(firsts: Shared<u32>, rows: u32, entries: [u32; UNROLL]) -> [usize; UNROLL] {
    let mut places = [0; UNROLL];
    let mut left = rows;
    while left > 1 {
        let half = left / 2;
        places = array::from_fn(|u| {
            let place = places[u] + half as usize;
            // SAFETY: a row that has been loaded.
            if unsafe { firsts.load(place) } <= entries[u] {
                place
            } else {
                places[u]
            }
        });
        left -= half;
    }
    places
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> Vec<&'static str> {
    [
        copy_products::<f32>().entry_points(),
        copy_columns().entry_points(),
        copy_entries::<f32>().entry_points(),
    ]
    .concat()
}

const _: () = assert!(ROWS == 512 && BLOCK >= 2 * WARP_SIZE);
