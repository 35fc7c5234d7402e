//! The columns of all rows, copied from where they are staged to their place in C. Rows that are
//! merged have none there: [`merge_rows`](crate::symbolic::merge_rows) writes theirs.
//!
//! A block takes 2048 neighbouring entries of C, whatever their rows: all lanes have the same work,
//! and the writes are contiguous. Two warps find the first and the last row of the tile by search.
//! The block loads the start of each row between them into shared memory, and each thread finds the
//! row of its entries there by binary search.
//!
//! ```text
//! row_ptr of C         0 3 4 9
//! entry                0 1 2 3 4 | 5 6 7 8        tiles of 5 entries
//! row of the entry     0 0 0 1 2 | 2 2 2 2
//! ```
//!
//! An entry costs its column, read and written, and a search in shared memory.

use crate::products::bins::{BIN_BITS, symbolic};
use crate::products::operands::OperandPatterns;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Entries of C that a block takes.
const TILE: u32 = 2048;

/// Rows whose starts a block holds in shared memory at a time.
const ROWS: u32 = 512;

/// Entries per thread whose loads are in flight together.
const UNROLL: usize = 4;

/// The launch for this many entries.
pub fn launch(entries: u32) -> LaunchConfig {
    LaunchConfig::new(entries.div_ceil(TILE), BLOCK)
}

/// Copies the columns of all rows but the merged ones to their place in C. A block takes 2048
/// entries.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). `row_words` is that of [`row_work`](crate::analysis::work::row_work).
/// `staged` has each row's columns from `starts[row]` on; rows of one nonzero of A come from B, merged rows are left
/// out. `row_ptr` has the row pointers of C, `col_idx` has room for its entries, of which there is at least one. The
/// launch is [`launch`]'s.
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
    // SAFETY: `copy` requires what this kernel requires: `row_ptr` gives each row its room in
    // `col_idx`.
    unsafe { copy.copy(col_idx) };
}

/// Where the columns of a row are.
#[derive(Clone, Copy)]
enum Source {
    /// They are staged.
    Staged,
    /// They are those of a row of B.
    B,
    /// The row is merged: they are not here.
    Merged,
}

/// Rows of C that a block holds in shared memory.
#[derive(Clone, Copy)]
struct TileRows {
    /// The first entry of each.
    firsts: Shared<u32>,
    /// What to add to an entry's position for the position of its column at the source.
    offsets: Shared<u32>,
    /// Where the columns are, as a [`Source`].
    sources: Shared<u32>,
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
    /// Copies the entries of the block's tile.
    ///
    /// # Safety
    ///
    /// As for [`copy_columns`]; all threads of the block call it.
    #[inline(always)]
    unsafe fn copy(&self, col_idx: GlobalMut<u32>) {
        let ends = shared_array!(u32; 2);
        let rows_here = TileRows {
            firsts: shared_array!(u32; 512),
            offsets: shared_array!(u32; 512),
            sources: shared_array!(u32; 512),
        };
        let t = thread::thread_idx_x();
        let warp = t / WARP_SIZE;
        // SAFETY: there is a block per tile of entries, and rows between those of its first and its
        // last entry are rows of C. The block synchronises between writes and reads of what is
        // shared; all threads agree on `start` and `row`.
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
                    let (source, from) = self.source(row + i);
                    rows_here.firsts.store(i as usize, first);
                    let offset = from.wrapping_sub(first);
                    rows_here.offsets.store(i as usize, offset);
                    rows_here.sources.store(i as usize, source as u32);
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

    /// Copies up to [`UNROLL`] entries, [`BLOCK`] apart, from `first` to before `end`. Past `end`
    /// the last entry is loaded again, and not written.
    ///
    /// # Safety
    ///
    /// `first` is below `end`, and the entries are those of the `rows` rows in `rows_here`.
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
        // SAFETY: each entry is at most `end - 1`, so it is one of these rows, by the contract.
        unsafe {
            let positions = rows_of(rows_here.firsts, rows, entries);
            let sources: [u32; UNROLL] = array::from_fn(|u| rows_here.sources.load(positions[u]));
            let columns: [u32; UNROLL] = array::from_fn(|u| {
                if sources[u] == Source::Merged as u32 {
                    return 0;
                }
                let offset = rows_here.offsets.load(positions[u]);
                let columns = if sources[u] == Source::B as u32 {
                    self.operands.b.col_idx
                } else {
                    self.staged
                };
                columns.load(entries[u].wrapping_add(offset) as usize)
            });
            unroll!(u in 0..4 {
                if u as u32 * BLOCK < end - first && sources[u] != Source::Merged as u32 {
                    col_idx.store(entries[u] as usize, columns[u]);
                }
            });
        }
    }

    /// Where the columns of a row come from, and their start there.
    ///
    /// # Safety
    ///
    /// `row` is a row of C; the rest is as [`copy_columns`] asks.
    #[inline(always)]
    unsafe fn source(&self, row: u32) -> (Source, u32) {
        // SAFETY: `row` is a row of C, by the contract; in bin `COPY` it has one nonzero of A.
        unsafe {
            let bin = self.row_words.load(row as usize) & ((1 << BIN_BITS) - 1);
            if bin == symbolic::COPY {
                let k = self.operands.a.row_ptr.load(row as usize) as usize;
                let column = self.operands.a.col_idx.load(k) as usize;
                return (Source::B, self.operands.extents.load(4 * column));
            }
            if (symbolic::MERGE..symbolic::SORT).contains(&bin) {
                return (Source::Merged, 0);
            }
            (Source::Staged, self.starts.load(row as usize))
        }
    }

    /// The row of an entry: the last row that starts at it or before. The whole warp searches, and
    /// cuts the rows into 33 parts at each step.
    ///
    /// # Safety
    ///
    /// `entry` is an entry of C. All lanes of the warp call it with the same entry.
    #[inline(always)]
    unsafe fn row_of(&self, entry: u32) -> u32 {
        let lane = warp::lane_id();
        let mut row = 0;
        let mut rows = self.operands.a.rows;
        while rows > 1 {
            let part = rows.div_ceil(WARP_SIZE + 1);
            // The first row of the part after the lane's own.
            let ahead = u64::from(part) * u64::from(lane + 1);
            // SAFETY: `ahead` is below `rows`, checked first, so `row + ahead` is a row of C.
            let is_before = ahead < u64::from(rows)
                && unsafe { self.row_ptr.load(row as usize + ahead as usize) } <= entry;
            let skipped = warp::ballot(FULL_MASK, is_before).count_ones() * part;
            row += skipped;
            rows = part.min(rows - skipped);
        }
        row
    }
}

/// For each entry the last of the `rows` rows that starts at it or before.
///
/// # Safety
///
/// `firsts` has `rows` numbers, ascending, and the block has synchronised.
#[inline(always)]
unsafe fn rows_of(firsts: Shared<u32>, rows: u32, entries: [u32; UNROLL]) -> [usize; UNROLL] {
    let mut positions = [0; UNROLL];
    let mut left = rows;
    while left > 1 {
        let half = left / 2;
        positions = array::from_fn(|u| {
            let position = positions[u] + half as usize;
            // SAFETY: `position` stays below `rows`.
            if unsafe { firsts.load(position) } <= entries[u] {
                position
            } else {
                positions[u]
            }
        });
        left -= half;
    }
    positions
}

const _: () = assert!(ROWS == 512 && BLOCK >= 2 * WARP_SIZE && UNROLL == 4);
