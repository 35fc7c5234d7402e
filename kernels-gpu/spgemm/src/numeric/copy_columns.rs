//! The columns of C brought to their places.

use crate::products::bins::{BIN_BITS, symbolic};
use crate::products::operands::OperandPatterns;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Entries of C that a block of [`copy_columns`] takes.
const TILE: u32 = 2048;

/// TileRows whose ends a block has in shared memory at a time.
const ROWS: u32 = 512;

/// Entries of a thread whose loads are in flight together.
const UNROLL: usize = 4;

/// The launch of [`copy_columns`] for that many entries.
pub fn launch(entries: u32) -> LaunchConfig {
    LaunchConfig::new(entries.div_ceil(TILE), BLOCK)
}

/// The columns of all rows to their places in C; a block 2048 entries.
///
/// # Safety
///
/// The operands are what they say; `row_words` is `row_work`'s, `starts` says where the columns of each row are in `staged`, but
/// of those of one nonzero of A, `row_ptr` where they belong in `col_idx`. The launch is [`launch`]'s.
#[kernel(name = "spgemm_copy_columns")]
pub unsafe fn copy_columns(
    operands: OperandPatterns,
    row_words: Global<u32>,
    starts: Global<u32>,
    staged: Global<u32>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
) {
    let copy = ColumnCopy {
        operands,
        row_words,
        starts,
        staged,
        row_ptr,
    };
    // SAFETY: the caller's contract.
    unsafe { copy.copy(col_idx) };
}

/// TileRows that a block has in shared memory.
#[derive(Clone, Copy)]
struct TileRows {
    /// The first entry of each.
    firsts: Shared<u32>,
    /// How much farther on its columns start.
    offsets: Shared<u32>,
    /// 1 if they are those of a row of B.
    from_b: Shared<u32>,
}

/// What a block copies from.
struct ColumnCopy {
    operands: OperandPatterns,
    row_words: Global<u32>,
    starts: Global<u32>,
    staged: Global<u32>,
    row_ptr: Global<u32>,
}

impl ColumnCopy {
    /// Copies the block's entries.
    #[inline(always)]
    unsafe fn copy(&self, col_idx: GlobalMut<u32>) {
        let ends = shared_array!(u32; 2);
        let rows_here = TileRows {
            firsts: shared_array!(u32; 512),
            offsets: shared_array!(u32; 512),
            from_b: shared_array!(u32; 512),
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
                    let (from_b, from) = self.source(row + i);
                    rows_here.firsts.store(i as usize, first);
                    let offset = from.wrapping_sub(first);
                    rows_here.offsets.store(i as usize, offset);
                    rows_here.from_b.store(i as usize, from_b.into());
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
        rows_here: TileRows,
        rows: u32,
        first: u32,
        end: u32,
        col_idx: GlobalMut<u32>,
    ) {
        let entries: [u32; UNROLL] =
            array::from_fn(|u| first.saturating_add(u as u32 * BLOCK).min(end - 1));
        // SAFETY: entries of these rows.
        unsafe {
            let places = rows_of(rows_here.firsts, rows, entries);
            let columns: [u32; UNROLL] = array::from_fn(|u| {
                let offset = rows_here.offsets.load(places[u]);
                let columns = if rows_here.from_b.load(places[u]) == 1 {
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
unsafe fn rows_of(firsts: Shared<u32>, rows: u32, entries: [u32; UNROLL]) -> [usize; UNROLL] {
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
