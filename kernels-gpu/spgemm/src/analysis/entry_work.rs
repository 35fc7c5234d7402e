//! The row pointers of C from the entries of its rows, and which kernel of the numeric phase takes a row: by its work, as the
//! symbolic phase knew it, and its entries.
//!
//! Both in one kernel, and so one wait of the host for both results. The sum of the entries before a tile of rows comes by
//! decoupled look-back (Merrill and Garland, Single-pass Parallel Prefix Scan, 2016): a block writes down the sum of its
//! tile, and adds up those of the tiles before it, back to one whose own sum of all before is known. Tiles are handed out in
//! the order in which blocks begin, so that those before are in work or done.

use crate::analysis::borders::Borders;
use crate::analysis::work::add_counts;
use crate::products::bins::WORK;
use crate::products::bins::{BIN_BITS, BINS, Known, RowWork, numeric};
use crate::products::operands::Pattern;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::primitives::scan::{inclusive_in_warp, scan_in_block};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Rows of a thread, neighbours.
const ROWS: usize = 4;

/// Rows of a tile, which a block takes.
const TILE: u32 = BLOCK * ROWS as u32;

/// The tiles of so many rows.
pub const fn tiles(rows: u32) -> u32 {
    rows.div_ceil(TILE)
}

/// The launch of [`entry_work`].
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(tiles(rows), BLOCK)
}

/// What [`entry_work`] leaves.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EntryWorkOutput {
    /// The bin's word of each row, with the row's chunks.
    pub words: GlobalMut<u32>,
    /// The items of each bin.
    pub counts: GlobalMut<u32>,
    /// The entries of all rows.
    pub total: GlobalMut<u64>,
    /// A number for the next tile.
    pub next_tile: GlobalMut<u32>,
    /// What is known of each tile's sum.
    pub sums: GlobalMut<u64>,
}

// SAFETY: `repr(C)`, of device pointers.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl KernelParam for EntryWorkOutput {}

/// Replaces each row's entries by its row pointer, modulo 2^32, and gives the numeric bin of each row whose values are not
/// known yet; a block 1024 rows.
///
/// # Safety
///
/// `work` and `row_words` are [`row_work`](crate::analysis::work::row_work)'s; `entries` has a number for each row, and room for one
/// behind them. `words` has room for a number a row; `counts` holds [`BINS`] zeros, `next_tile` one, `sums` one for each of
/// the [`tiles`]; `total` has room for one. The launch is [`launch`]'s.
#[kernel(name = "spgemm_entry_work")]
pub unsafe fn entry_work(
    a: Pattern,
    work: Global<u32>,
    row_words: Global<u32>,
    known: Known,
    borders: Borders,
    entries: GlobalMut<u32>,
    output: EntryWorkOutput,
) {
    let shared_counts = shared_array!(u32; 64);
    let warp_sums = shared_array!(u64; 8);
    // The tile, and the entries before it.
    let tile_of_block = shared_array!(u32; 1);
    let before_tile = shared_array!(u64; 1);
    let t = thread::thread_idx_x();
    let lane = warp::lane_id();
    // SAFETY: rows below `rows`; what is shared is written by one thread or by atomic operations between barriers; what
    // blocks tell each other is accessed by atomic operations alone.
    unsafe {
        if t < BINS {
            shared_counts.store(t as usize, 0);
        }
        if t == 0 {
            tile_of_block.store(0, output.next_tile.atomic_add(Scope::Device, 0, 1));
        }
        thread::sync_threads();
        let tile = tile_of_block.load(0);
        let first = u64::from(tile) * u64::from(TILE) + u64::from(t) * ROWS as u64;
        let counts: [u32; ROWS] = core::array::from_fn(|i| {
            if first + (i as u64) < u64::from(a.rows) {
                entries.load(first as usize + i)
            } else {
                0
            }
        });
        let note = |row: u64, entries: u32| {
            let (mut bin, mut chunks) = (BINS, 0);
            if row < u64::from(a.rows) {
                let row = row as u32;
                (bin, chunks) = bin_of(&a, work, row_words, known, &borders, row, entries);
                output.words.store(row as usize, bin | chunks << BIN_BITS);
            }
            // Most rows are one item each, and neighbours have few bins.
            let peers = warp::match_any(FULL_MASK, bin | chunks << BIN_BITS);
            if bin < BINS && lane == peers.trailing_zeros() {
                shared_counts.atomic_add(bin as usize, peers.count_ones() * chunks);
            }
        };
        // A loop, as what is done with a row is long: the counts move up.
        let mut rest = counts;
        let mut row = first;
        let end = first + u64::from(thread::opaque(ROWS as u32));
        while row < end {
            thread::keep_rolled();
            note(row, rest[0]);
            rest = [rest[1], rest[2], rest[3], rest[0]];
            row += 1;
        }
        let [c0, c1, c2, c3] = counts.map(u64::from);
        let sum = c0 + c1 + c2 + c3;
        let (before_thread, all) = scan_in_block(sum, warp_sums, |a, b| a + b, 0_u64);
        add_counts(shared_counts, output.counts);
        if t < WARP_SIZE {
            let before = before(output.sums, tile, all);
            if lane == 0 {
                before_tile.store(0, before);
            }
        }
        thread::sync_threads();
        let mut at = before_tile.load(0) + before_thread;
        unroll!(i in 0..4 {
            let row = first + i as u64;
            if row < u64::from(a.rows) {
                entries.store(row as usize, at as u32);
            }
            at += u64::from(counts[i]);
            if row + 1 == u64::from(a.rows) {
                entries.store(row as usize + 1, at as u32);
                output.total.store(0, at);
            }
        });
    }
}

/// The numeric bin of a row of so many entries, and its chunks.
#[inline(always)]
unsafe fn bin_of(
    a: &Pattern,
    work: Global<u32>,
    row_words: Global<u32>,
    known: Known,
    borders: &Borders,
    row: u32,
    entries: u32,
) -> (u32, u32) {
    // SAFETY: a row.
    unsafe {
        let bin = row_words.load(row as usize) & ((1 << BIN_BITS) - 1);
        if known.has(bin, entries) {
            return (numeric::EMPTY, 1);
        }
        let (a_start, a_end) = a.row(row);
        let [products, _, span, runs] = work.load4(WORK * row as usize);
        let work = RowWork {
            products,
            span,
            nonzeros: a_end - a_start,
            runs: runs != 0,
            is_run: runs == 2,
        };
        borders.numeric_bin(work, entries)
    }
}

/// Bits of a tile's word above its sum.
const STATE_SHIFT: u32 = 62;

/// The sum is that of the tile.
const OF_TILE: u64 = 1 << STATE_SHIFT;

/// The sum is that of the tile and all before it.
const OF_ALL: u64 = 2 << STATE_SHIFT;

/// The entries of all tiles before this one, which has `sum`; a warp asks.
#[inline(always)]
unsafe fn before(sums: GlobalMut<u64>, tile: u32, sum: u64) -> u64 {
    let lane = warp::lane_id();
    let mut before = 0;
    // SAFETY: a word for each tile; atomic operations alone.
    unsafe {
        if lane == 0 && tile > 0 {
            sums.atomic_store(Scope::Device, tile as usize, OF_TILE | sum);
        }
        let mut end = tile;
        while end > 0 {
            // What is before the first tile is known to be nothing.
            let mut word = OF_ALL;
            if lane < end {
                loop {
                    word = sums.atomic_load(Scope::Device, (end - 1 - lane) as usize);
                    if word >> STATE_SHIFT != 0 {
                        break;
                    }
                }
            }
            let known = warp::ballot(FULL_MASK, word & OF_ALL != 0);
            // The tiles up to the nearest one that knows all before it.
            let mine = if known == 0 || lane <= known.trailing_zeros() {
                word & !(OF_ALL | OF_TILE)
            } else {
                0
            };
            let up_to = inclusive_in_warp(mine, |a, b| a + b);
            before += warp::shfl_idx(FULL_MASK, up_to, WARP_SIZE - 1, WARP_SIZE);
            end = if known == 0 { end - WARP_SIZE } else { 0 };
        }
        if lane == 0 {
            sums.atomic_store(Scope::Device, tile as usize, OF_ALL | (before + sum));
        }
    }
    before
}

const _: () = assert!(BINS == 64 && BLOCK >= BINS && BLOCK / WARP_SIZE == 8 && ROWS == 4);
