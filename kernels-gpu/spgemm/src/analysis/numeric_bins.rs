//! The row pointers of C and the numeric bin of each row, from the number of entries of each row.
//! One kernel does both, so the host waits once.
//!
//! A block takes a tile of 1024 rows. The number of entries before a tile comes by decoupled
//! look-back (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back",
//! NVIDIA NVR-2016-002). A block publishes the sum of its tile, and adds the sums of the tiles
//! before it, back to one whose prefix is known. Tiles are handed out in the order in which blocks
//! start, so all earlier tiles are being computed or done.
//!
//! ```text
//! tile          0     1     2     3
//! sum           40    25    30    10
//! published     P 40  P 65  S 30  .         P prefix (all up to here), S sum of the tile alone
//!                                           tile 3: 30 + 65 entries before it
//! ```

use crate::analysis::bin_limits::BinLimits;
use crate::analysis::work::add_counts;
use crate::products::bins::WORK_WORDS;
use crate::products::bins::{BIN_BITS, BINS, RowWork, SymbolicValues, numeric, symbolic};
use crate::products::operands::CsrPattern;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::primitives::scan::{inclusive_in_warp, scan_in_block};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Neighbouring rows per thread.
const ROWS: usize = 4;

/// Rows of a tile, which a block takes.
const TILE: u32 = BLOCK * ROWS as u32;

/// The number of tiles for this many rows.
pub const fn tiles(rows: u32) -> u32 {
    rows.div_ceil(TILE)
}

/// The launch of [`numeric_bins`].
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(tiles(rows), BLOCK)
}

/// Where [`numeric_bins`] writes.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct NumericBinsOutput {
    /// For each row its numeric bin and the number of its chunks.
    pub words: GlobalMut<u32>,
    /// The number of items of each bin.
    pub counts: GlobalMut<u32>,
    /// The number of entries of C.
    pub total: GlobalMut<u64>,
    /// The number of the next tile.
    pub next_tile: GlobalMut<u32>,
    /// For each tile, the state and the sum or prefix that it has published.
    pub sums: GlobalMut<u64>,
}

/// Replaces the number of entries of each row by the row's row pointer, modulo 2^32, and writes the
/// numeric bin of each row. A row whose values are known already is in the empty bin.
///
/// A block takes 1024 rows, a thread four neighbours. A row costs 36 bytes.
///
/// # Safety
///
/// `a` is valid (see [`OperandPatterns`](crate::products::operands::OperandPatterns)). `work` and
/// `row_words` are those of [`row_work`](crate::analysis::work::row_work). `entries` has a number
/// per row and room for one more. In `output`, `words` has room for a number per row; `counts`
/// holds [`BINS`] zeros, `next_tile` one, `sums` one for each of the [`tiles`]; `total` has room
/// for one. The launch is [`launch`]'s.
#[kernel(name = "spgemm_numeric_bins")]
pub unsafe fn numeric_bins(
    a: CsrPattern,
    work: Global<u32>,
    row_words: Global<u32>,
    known: SymbolicValues,
    bin_limits: BinLimits,
    entries: GlobalMut<u32>,
    output: NumericBinsOutput,
) {
    let shared_counts = shared_array!(u32; 64);
    let warp_sums = shared_array!(u64; 8);
    // The block's tile, and the entries before it.
    let tile_of_block = shared_array!(u32; 1);
    let before_tile = shared_array!(u64; 1);
    let t = thread::thread_idx_x();
    let lane = warp::lane_id();
    // SAFETY: `row` is below `a.rows` where it is used. What is shared is written by one thread or
    // by atomic operations between barriers, which all threads reach. What blocks tell each other
    // is accessed by atomic operations alone.
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
        let record = |row: u64, entries: u32| {
            let (mut bin, mut chunks) = (BINS, 0);
            if row < u64::from(a.rows) {
                let row = row as u32;
                (bin, chunks) = bin_of(&a, work, row_words, known, &bin_limits, row, entries);
                output.words.store(row as usize, bin | chunks << BIN_BITS);
            }
            // Most rows are one item, and neighbouring rows share few bins.
            let peers = warp::match_any(FULL_MASK, bin | chunks << BIN_BITS);
            if bin < BINS && lane == peers.trailing_zeros() {
                shared_counts.atomic_add(bin as usize, peers.count_ones() * chunks);
            }
        };
        // A loop, since the body is long. The counts move up, so that they stay in registers.
        let mut remaining = counts;
        let mut row = first;
        let end = first + u64::from(thread::opaque(ROWS as u32));
        while row < end {
            thread::keep_rolled();
            record(row, remaining[0]);
            remaining = [remaining[1], remaining[2], remaining[3], 0];
            row += 1;
        }
        let [c0, c1, c2, c3] = counts.map(u64::from);
        let sum = c0 + c1 + c2 + c3;
        let (before_thread, all) = scan_in_block(sum, warp_sums, |a, b| a + b, 0_u64);
        add_counts(shared_counts, output.counts);
        if t < WARP_SIZE {
            let before = look_back(output.sums, tile, all);
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

/// The numeric bin of a row with this many entries, and the number of its chunks.
///
/// # Safety
///
/// `row` is below `a.rows`; the arrays are as [`numeric_bins`] asks.
#[inline(always)]
unsafe fn bin_of(
    a: &CsrPattern,
    work: Global<u32>,
    row_words: Global<u32>,
    known: SymbolicValues,
    bin_limits: &BinLimits,
    row: u32,
    entries: u32,
) -> (u32, u32) {
    // SAFETY: `row` is below `a.rows`, by the contract.
    unsafe {
        let bin = row_words.load(row as usize) & ((1 << BIN_BITS) - 1);
        if known.contains(bin, entries) {
            return (numeric::EMPTY, 1);
        }
        let (a_start, a_end) = a.row(row);
        let [products, _, span, runs] = work.load4(WORK_WORDS * row as usize);
        let work = RowWork {
            products,
            span,
            nonzeros: a_end - a_start,
            b_rows_are_runs: runs != 0,
            a_row_is_run: runs == 2,
            is_near: (symbolic::MERGE..symbolic::SORT).contains(&bin),
        };
        bin_limits.numeric_bin(work, entries)
    }
}

/// A tile's state stands in the bits from this one on, its sum below. State 0: nothing is known.
const STATE_SHIFT: u32 = 62;

/// State: the sum is that of the tile alone.
const TILE_SUM: u64 = 1 << STATE_SHIFT;

/// State: the sum is that of the tile and all tiles before it.
const PREFIX_SUM: u64 = 2 << STATE_SHIFT;

/// The entries of all tiles before `tile`, which has `sum`; publishes the tile's sum, then its
/// prefix. One warp calls it.
///
/// # Safety
///
/// `sums` has a word for each tile, zero at the launch. Every tile before this one is published in
/// time: its block has started.
#[inline(always)]
unsafe fn look_back(sums: GlobalMut<u64>, tile: u32, sum: u64) -> u64 {
    let lane = warp::lane_id();
    let mut before = 0;
    // SAFETY: `lane` is below `end`, so the word is that of a tile; the words are accessed by
    // atomic operations alone.
    unsafe {
        if lane == 0 && tile > 0 {
            sums.atomic_store(Scope::Device, tile as usize, TILE_SUM | sum);
        }
        let mut end = tile;
        while end > 0 {
            // Nothing comes before the first tile: a prefix of 0.
            let mut word = PREFIX_SUM;
            if lane < end {
                loop {
                    word = sums.atomic_load(Scope::Device, (end - 1 - lane) as usize);
                    if word >> STATE_SHIFT != 0 {
                        break;
                    }
                }
            }
            let known = warp::ballot(FULL_MASK, word & PREFIX_SUM != 0);
            // The tiles back to the nearest one that has published its prefix.
            let mine = if known == 0 || lane <= known.trailing_zeros() {
                word & !(PREFIX_SUM | TILE_SUM)
            } else {
                0
            };
            let up_to = inclusive_in_warp(mine, |a, b| a + b);
            before += warp::shfl_idx(FULL_MASK, up_to, WARP_SIZE - 1, WARP_SIZE);
            end = if known == 0 { end - WARP_SIZE } else { 0 };
        }
        if lane == 0 {
            sums.atomic_store(Scope::Device, tile as usize, PREFIX_SUM | (before + sum));
        }
    }
    before
}

const _: () = assert!(BINS == 64 && BLOCK >= BINS && BLOCK / WARP_SIZE == 8 && ROWS == 4);
