//! Rows of C brought to their places: from where they were put aside, or, of one nonzero of A, from the row of B.
//!
//! The structure alone comes by tiles: a block takes 2048 entries of C that follow each other, whatever their rows, so that all
//! lanes have the same work and what is written is one piece; it looks up the rows' ends in shared memory. Short rows that have
//! their values are a warp's 16 at a time, their entries numbered through: with a group of lanes for each, those of short
//! rows waited for those of longer ones.
//!
//! On an H200, R-MAT .35 with 1,138,499 rows: the whole multiplication takes 1.16 ms so, with [`place`](crate::analysis::row_lists) as it is, and took 1.36
//! with groups of lanes and a list's place asked for row by row.

use crate::products::bins::{BIN_BITS, Known, symbolic};
use crate::products::lanes::{inclusive_sum, owner, warp_of_grid};
use crate::products::operands::{Factors, Items, Operands, Structure};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Entries of C that a block of [`copy_columns`] takes.
const TILE: u32 = 2048;

/// Rows whose ends a block has in shared memory at a time.
const ROWS: u32 = 512;

/// Entries of a thread whose loads are in flight together.
const UNROLL: usize = 4;

/// Rows of a warp of [`copy_rows`].
const ROWS_A_WARP: u32 = 16;

/// Entries of a row of one nonzero of A that a warp of [`copy_products`] takes.
pub const CHUNK: u32 = 1024;

/// The launch of [`copy_columns`] for that many entries.
pub fn launch_tiles(entries: u32) -> LaunchConfig {
    LaunchConfig::new(entries.div_ceil(TILE), BLOCK)
}

/// The launch of [`copy_rows`] for that many rows.
pub fn launch_rows(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE * ROWS_A_WARP), BLOCK)
}

/// The launch of [`copy_products`] for that many chunks of rows, a warp each.
pub fn launch_products(chunks: u32) -> LaunchConfig {
    LaunchConfig::new(chunks.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// The values of rows of one nonzero of A: those of the row of B, multiplied; and their columns, if they are wanted. A warp
/// [`CHUNK`] entries.
///
/// # Safety
///
/// The operands are what they say; the items are chunks of rows with one nonzero in A; `c` is the product's structure, `values`
/// its values.
#[kernel(name = "spgemm_copy_products", T = [f32, f64])]
pub unsafe fn copy_products<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    c: Structure,
    values: GlobalMut<T>,
) {
    let (item, lane) = (warp_of_grid(), warp::lane_id());
    if item >= items.count {
        return;
    }
    // SAFETY: rows of the matrices.
    unsafe {
        let [row, chunk] = items.load(item);
        let k = operands.a.row_ptr.load(row as usize) as usize;
        let factor = factors.a.load(k);
        let [start, end] = operands
            .extents
            .load2(4 * operands.a.col_idx.load(k) as usize);
        let to = c.row_ptr.load(row as usize);
        let first = chunk * CHUNK;
        let end_of_chunk = first + (end - start - first).min(CHUNK);
        let mut p = first + lane;
        while p < end_of_chunk {
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

/// Columns and values of the rows whose values are known to their places in C; a warp 16 rows, whose entries are numbered
/// through.
///
/// # Safety
///
/// The operands are what they say; `row_words` is `row_work`'s, `aside` has columns and values of the rows that are known but
/// those of one nonzero of A, `row_ptr` says where they belong in `col_idx` and `values`. The launch is [`launch_rows`]'s.
#[kernel(name = "spgemm_copy_rows", T = [f32, f64])]
pub unsafe fn copy_rows<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    row_words: Global<u32>,
    known: Known,
    aside: Aside<T>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
    values: GlobalMut<T>,
) {
    let lane = warp::lane_id();
    let first_row = thread::index_1d() / u64::from(WARP_SIZE) * u64::from(ROWS_A_WARP);
    let row = first_row + u64::from(lane);
    // SAFETY: rows of C and their entries; if a row's bin says so, with one nonzero in A; all lanes of the warp are here.
    unsafe {
        // A row of the lane: its entries, where they are and where they belong.
        let (mut count, mut from, mut to) = (0, 0, 0);
        let (mut is_of_b, mut factor) = (false, T::ONE);
        if lane < ROWS_A_WARP && row < u64::from(operands.a.rows) {
            let row = row as usize;
            let bin = row_words.load(row) & ((1 << BIN_BITS) - 1);
            to = row_ptr.load(row);
            count = row_ptr.load(row + 1) - to;
            if !known.has(bin, count) {
                count = 0;
            } else if bin == symbolic::COPY {
                let k = operands.a.row_ptr.load(row) as usize;
                from = operands.b.row_ptr.load(operands.a.col_idx.load(k) as usize);
                factor = factors.a.load(k);
                is_of_b = true;
            } else {
                from = aside.starts.load(row);
            }
        }
        let are_of_b = warp::ballot(FULL_MASK, is_of_b);
        let sum = inclusive_sum::<32>(FULL_MASK, count);
        let total = warp::shfl_idx(FULL_MASK, sum, WARP_SIZE - 1, WARP_SIZE);
        let (from, to) = (from.wrapping_sub(sum - count), to.wrapping_sub(sum - count));
        let mut first = 0;
        while first < total {
            let entries: [(u32, u32, T); UNROLL] = array::from_fn(|u| {
                let p = first + u as u32 * WARP_SIZE + lane;
                let owner = owner::<32>(FULL_MASK, sum, p);
                let from = warp::shfl_idx(FULL_MASK, from, owner, WARP_SIZE).wrapping_add(p);
                let to = warp::shfl_idx(FULL_MASK, to, owner, WARP_SIZE).wrapping_add(p);
                let factor = if are_of_b == 0 {
                    T::ONE
                } else {
                    warp::shfl_idx(FULL_MASK, factor, owner, WARP_SIZE)
                };
                if p >= total {
                    return (0, 0, T::ZERO);
                }
                let (columns, from_values) = if are_of_b >> owner & 1 == 1 {
                    (operands.b.col_idx, factors.b)
                } else {
                    (aside.columns, aside.values)
                };
                let value = factor * from_values.load(from as usize);
                (to, columns.load(from as usize), value)
            });
            unroll!(u in 0..4 {
                if first + u as u32 * WARP_SIZE + lane < total {
                    let (to, column, value) = entries[u];
                    col_idx.store(to as usize, column);
                    values.store(to as usize, value);
                }
            });
            first += UNROLL as u32 * WARP_SIZE;
        }
    }
}

/// The columns of all rows to their places in C; a block 2048 entries.
///
/// # Safety
///
/// The operands are what they say; `row_words` is `row_work`'s, `starts` says where the columns of each row are in `staged`, but
/// of those of one nonzero of A, `row_ptr` where they belong in `col_idx`. The launch is [`launch_tiles`]'s.
#[kernel(name = "spgemm_copy_columns")]
pub unsafe fn copy_columns(
    operands: Operands,
    row_words: Global<u32>,
    starts: Global<u32>,
    staged: Global<u32>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
) {
    let tile = Tile {
        operands,
        row_words,
        starts,
        staged,
        row_ptr,
    };
    // SAFETY: the caller's contract.
    unsafe { tile.copy(col_idx) };
}

/// Rows that a block has in shared memory.
#[derive(Clone, Copy)]
struct Rows {
    /// The first entry of each.
    firsts: Shared<u32>,
    /// How much farther on its columns start.
    offsets: Shared<u32>,
    /// 1 if they are those of a row of B.
    of_b: Shared<u32>,
}

/// What a block copies from.
struct Tile {
    operands: Operands,
    row_words: Global<u32>,
    starts: Global<u32>,
    staged: Global<u32>,
    row_ptr: Global<u32>,
}

impl Tile {
    /// Copies the block's entries.
    #[inline(always)]
    unsafe fn copy(&self, col_idx: GlobalMut<u32>) {
        let ends = shared_array!(u32; 2);
        let rows_here = Rows {
            firsts: shared_array!(u32; 512),
            offsets: shared_array!(u32; 512),
            of_b: shared_array!(u32; 512),
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
                    let (of_b, from) = self.source(row + i);
                    rows_here.firsts.store(i as usize, first);
                    let offset = from.wrapping_sub(first);
                    rows_here.offsets.store(i as usize, offset);
                    rows_here.of_b.store(i as usize, of_b.into());
                    i += BLOCK;
                }
                thread::sync_threads();
                let end = tile_end.min(self.row_ptr.load((row + rows) as usize));
                let mut entry = start + t;
                while entry < end {
                    self.copy_some(rows_here, rows, entry, end, col_idx);
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
    unsafe fn copy_some(
        &self,
        rows_here: Rows,
        rows: u32,
        first: u32,
        end: u32,
        col_idx: GlobalMut<u32>,
    ) {
        let entries: [u32; UNROLL] =
            array::from_fn(|u| first.saturating_add(u as u32 * BLOCK).min(end - 1));
        // SAFETY: entries of these rows.
        unsafe {
            let places = places(rows_here.firsts, rows, entries);
            let columns: [u32; UNROLL] = array::from_fn(|u| {
                let offset = rows_here.offsets.load(places[u]);
                let columns = if rows_here.of_b.load(places[u]) == 1 {
                    self.operands.b.col_idx
                } else {
                    self.staged
                };
                columns.load(entries[u].wrapping_add(offset) as usize)
            });
            unroll!(u in 0..4 {
                if u as u32 * BLOCK < end - first {
                    col_idx.store(entries[u] as usize, columns[u]);
                }
            });
        }
    }

    /// Whether a row comes from B, and where it starts there or where it was put aside.
    #[inline(always)]
    unsafe fn source(&self, row: u32) -> (bool, u32) {
        // SAFETY: a row of C; if its bin says so, with one nonzero in A.
        unsafe {
            let bin = self.row_words.load(row as usize) & ((1 << BIN_BITS) - 1);
            if bin == symbolic::COPY {
                let k = self.operands.a.row_ptr.load(row as usize) as usize;
                let column = self.operands.a.col_idx.load(k) as usize;
                return (true, self.operands.extents.load(4 * column));
            }
            (false, self.starts.load(row as usize))
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

const _: () = assert!(ROWS == 512 && BLOCK >= 2 * WARP_SIZE && UNROLL == 4);
