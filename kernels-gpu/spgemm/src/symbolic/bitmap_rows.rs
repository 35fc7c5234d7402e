//! Symbolic, for long rows: a bitmap of the row's columns in shared memory.
//!
//! A block takes a row. A product costs its 4-byte column and one atomic operation, without
//! probing. The bitmap needs no sort: its bits are counted, then written out as columns. It takes
//! 12.5 KB for 100,000 columns. A row that spans more columns than the bitmap has bits is done in
//! windows, and binary search cuts each row of B to the window. So no row is too long.
//!
//! | `SPARSE` | for | column c of the bitmap |
//! |---|---|---|
//! | 0 | many products per word | bit `c / 32 % 32` of word `c % 32` in its group of 1024 |
//! | 1 | few products in a wide span | bit `c % 32` of word `c / 32` |
//!
//! Lanes bring neighbouring columns, and atomic operations on one word are serialised. The first
//! layout therefore puts neighbours into different words; a warp transposes 32 words by five
//! shuffles when it writes them out. In the second layout most words are 0. A *summary*, a bitmap of
//! the words with bits, saves looking at the others: a warp lists the words of 8 summary words, and
//! writes out 32 of them at a time.
//!
//! ```text
//! bitmap, 4 bits a word    0000 0110 0000 0000 | 0001 0000 0000 1000
//! summary                  0100                | 1001
//! listed words             1, 4, 7
//! ```

use super::bits::{compact_bits, transposed, write_bits};
use crate::products::bins::WORK_WORDS;
use crate::products::lanes::inclusive_sum;
use crate::products::operands::{OperandPatterns, RowList};
use crate::products::row_products::{LONG_ROW_LIST_WORDS, RowProducts};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Columns of a group of 32 words, which a warp writes out together.
const GROUP: u32 = WARP_SIZE * 32;

/// From this many rows on, small bitmaps have small blocks. Fewer warps then share a row and wait for
/// each other, but a long row takes longer, which few rows do not hide.
const MANY_ROWS: u32 = 8192;

/// Threads in a block. If a bitmap is so large that one block fills a multiprocessor, the block is
/// as large as possible.
const fn block(rows: u32, words: u32) -> u32 {
    match words {
        0..=1024 if rows >= MANY_ROWS => 128,
        1025..=4096 if rows >= MANY_ROWS => 256,
        0..=20_000 => 512,
        _ => 1024,
    }
}

/// Words of a bitmap of `columns` columns, or as many as fit `shared_bytes` of shared memory if
/// that is less. A multiple of 32.
#[inline(always)]
pub fn words(columns: u32, shared_bytes: u32) -> u32 {
    let most = shared_bytes.saturating_sub(rest_bytes(1024) + 4 * LONG_ROW_LIST_WORDS) / 4;
    columns.div_ceil(GROUP).min(most / WARP_SIZE) * WARP_SIZE
}

/// Positions of columns that a warp has room for.
const POSITIONS: u32 = 512;

/// The same with a sparse bitmap, whose words have few bits. Less shared memory lets more rows share
/// a multiprocessor.
const SPARSE_POSITIONS: u32 = 256;

/// Summary words whose bitmap words a warp lists at a time: four lanes take one.
const LISTED_GROUPS: u32 = WARP_SIZE / 4;

/// Bits of a summary word that a lane takes.
const LISTED_BITS: u32 = 32 * LISTED_GROUPS / WARP_SIZE;

/// Maximum number of listed words of a warp.
const MAX_LISTED: u32 = 32 * LISTED_GROUPS;

/// Bytes of shared memory beside the bitmap: for each warp positions of bits, and a count.
const fn rest_bytes(block: u32) -> u32 {
    block / WARP_SIZE * (2 * POSITIONS + 4)
}

/// Threads in a block with a sparse bitmap: more where fewer blocks fit a multiprocessor.
const fn sparse_block(words: u32) -> u32 {
    match words {
        0..=2048 => 64,
        2049..=4096 => 128,
        _ => 256,
    }
}

/// The launch for this many rows with bitmaps of `words` words.
pub fn launch(rows: u32, words: u32) -> LaunchConfig {
    let block = block(rows, words);
    LaunchConfig::new(rows, block).shared_bytes(4 * words + rest_bytes(block))
}

/// The same with sparse bitmaps, their summaries, and each warp's list of words.
pub fn launch_sparse(rows: u32, words: u32) -> LaunchConfig {
    let block = sparse_block(words);
    let summary_bytes = 4 * words / WARP_SIZE;
    let warp_bytes = 2 * (SPARSE_POSITIONS + MAX_LISTED) + 4;
    LaunchConfig::new(rows, block)
        .shared_bytes(4 * words + summary_bytes + block / WARP_SIZE * warp_bytes)
}

/// The columns of each listed row, ascending, and their number. A block takes a row; its warps
/// share the row's products, and then the words of the bitmap.
///
/// At most 40 registers per thread let three blocks of 512 threads share a multiprocessor.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). `words` is a multiple of 32. `work` and `starts`
/// are those of [`row_work`](crate::analysis::work::row_work); `staged` has the room that `starts`
/// gives each row, `entries` a number per row. The launch is [`launch`]'s, with `SPARSE` 1
/// [`launch_sparse`]'s.
#[kernel(name = "spgemm_bitmap_rows", SPARSE = [0, 1], registers = 40)]
pub unsafe fn bitmap_rows<const SPARSE: u32>(
    operands: OperandPatterns,
    items: RowList,
    words: u32,
    work: Global<u32>,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let t = thread::thread_idx_x();
    let (warp, warps) = (t / WARP_SIZE, thread::block_dim_x() / WARP_SIZE);
    let list = shared_array!(u32; 32);
    let bitmap = shared::dynamic_shared_mem::<u32>();
    let summary = bitmap.offset(words as usize);
    let (counts, places) = match SPARSE {
        1 => (
            summary.offset((words / WARP_SIZE) as usize),
            SPARSE_POSITIONS + MAX_LISTED,
        ),
        _ => (summary, POSITIONS),
    };
    let all_places = counts.offset(warps as usize).cast::<u16>();
    let positions = all_places.offset((warp * places) as usize);
    // SAFETY: there is a block per item. Bits are below `32 * used`, as the window ends there. The
    // row has at most `span` entries, which it has room for. The block synchronises between writes
    // and reads of the bitmap and the counts; all threads agree on `covered`.
    unsafe {
        let [row, _] = items.load(thread::block_idx_x());
        let [products, first, span, _] = work.load4(WORK_WORDS * row as usize);
        let to = starts.load(row as usize) as usize;
        let mut row_products = RowProducts::columns(&operands, row, products, [warp, warps]);
        row_products.long_rows = Some(list);
        let (mut covered, mut found) = (0, 0);
        while covered < span {
            let used = words.min((span - covered).div_ceil(GROUP) * WARP_SIZE);
            let origin = first + covered;
            if words < span.div_ceil(32) {
                row_products.window =
                    Some((origin, origin + (32 * used - 1).min(span - covered - 1)));
            }
            if t == 0 {
                list.store(0, 0);
            }
            let mut word = 4 * t;
            while word < used {
                bitmap.store4(word as usize, [0; 4]);
                word += 4 * thread::block_dim_x();
            }
            if SPARSE == 1 {
                let mut group = t;
                while group < used / WARP_SIZE {
                    summary.store(group as usize, 0);
                    group += thread::block_dim_x();
                }
            }
            thread::sync_threads();
            row_products.for_each::<false>(|column, _| {
                let bit = column - origin;
                if SPARSE == 1 {
                    let word = bit / 32;
                    if bitmap.atomic_or(word as usize, 1 << (bit % 32)) == 0 {
                        summary.atomic_or((word / 32) as usize, 1 << (word % 32));
                    }
                } else {
                    let word = bit / GROUP * WARP_SIZE + bit % WARP_SIZE;
                    bitmap.atomic_or(word as usize, 1 << (bit / 32 % 32));
                }
            });
            thread::sync_threads();
            let bitmap_window = BitmapWindow {
                bitmap,
                used,
                summary,
                counts,
                positions,
            };
            let (below, all) = bitmap_window.count::<SPARSE>(warp, warps);
            let to = staged.offset(to + (found + below) as usize);
            if SPARSE == 1 {
                bitmap_window.write_sparse(warp, warps, origin, to);
            } else {
                bitmap_window.write_dense(warp, warps, origin, to);
            }
            found += all;
            // The span may end within the last word.
            covered = covered.saturating_add(32 * used);
            thread::sync_threads();
        }
        if t == 0 {
            entries.store(row as usize, found);
        }
    }
}

/// The bitmap of a window of columns, and the shared memory in which a warp writes it out.
struct BitmapWindow {
    /// The bitmap.
    bitmap: Shared<u32>,
    /// The words of the bitmap that the window needs.
    used: u32,
    /// Of sparse bitmaps only: bit i of word g is 1 if word 32 g + i of the bitmap has bits.
    summary: Shared<u32>,
    /// The bits of each warp's words.
    counts: Shared<u32>,
    /// Room for [`POSITIONS`] positions of bits that the warp writes out. With a sparse bitmap, for
    /// [`SPARSE_POSITIONS`], and then for the words that the warp has listed.
    positions: Shared<u16>,
}

impl BitmapWindow {
    /// The groups of 32 words that a warp takes, from the first to before the second.
    #[inline(always)]
    fn groups(&self, warp: u32, warps: u32) -> (u32, u32) {
        let groups = self.used.div_ceil(WARP_SIZE);
        let each = groups.div_ceil(warps.max(1));
        ((warp * each).min(groups), ((warp + 1) * each).min(groups))
    }

    /// The calling lane's word of a group; 0 past the last word.
    ///
    /// # Safety
    ///
    /// The block has synchronised since the last change of the bitmap.
    #[inline(always)]
    unsafe fn word(&self, group: u32) -> u32 {
        let word = group * WARP_SIZE + warp::lane_id();
        if word < self.used {
            // SAFETY: `word` is below `used`, checked above.
            unsafe { self.bitmap.load(word as usize) }
        } else {
            0
        }
    }

    /// The calling lane's share of the summary of [`LISTED_GROUPS`] groups from `group` on:
    /// [`LISTED_BITS`] bits; 0 from group `end` on.
    ///
    /// # Safety
    ///
    /// `end` is a number of groups, and the block has synchronised since the last change of the
    /// summary.
    #[inline(always)]
    unsafe fn lane_words(&self, group: u32, end: u32) -> u32 {
        let bit = warp::lane_id() * LISTED_BITS;
        let group = group + bit / 32;
        if group < end {
            // SAFETY: `group` is below `end`, checked above, and the summary has a word for each.
            let words = unsafe { self.summary.load(group as usize) };
            words >> (bit % 32) & ((1 << LISTED_BITS) - 1)
        } else {
            0
        }
    }

    /// The number of bits in the words of all warps before this one, and in all words.
    ///
    /// # Safety
    ///
    /// As for [`word`](Self::word); all threads of the block call it.
    #[inline(always)]
    unsafe fn count<const SPARSE: u32>(&self, warp: u32, warps: u32) -> (u32, u32) {
        let (mut group, end) = self.groups(warp, warps);
        let mut bits = 0;
        // SAFETY: `counts` has a word for each warp; a barrier stands between its writes and reads.
        // A bit of the summary stands for a word of the bitmap.
        unsafe {
            while group < end {
                if SPARSE == 1 {
                    let mut words = self.lane_words(group, end);
                    let first = group * WARP_SIZE + warp::lane_id() * LISTED_BITS;
                    while words != 0 {
                        let word = first + words.trailing_zeros();
                        bits += self.bitmap.load(word as usize).count_ones();
                        words &= words - 1;
                    }
                    group += LISTED_GROUPS;
                } else {
                    bits += self.word(group).count_ones();
                    group += 1;
                }
            }
            let bits = warp::reduce_add(FULL_MASK, bits);
            if warp::lane_id() == 0 {
                self.counts.store(warp as usize, bits);
            }
            thread::sync_threads();
            let lane = warp::lane_id();
            let count = if lane < warps {
                self.counts.load(lane as usize)
            } else {
                0
            };
            let sum = inclusive_sum::<32>(FULL_MASK, count);
            let all = warp::shfl_idx(FULL_MASK, sum, WARP_SIZE - 1, WARP_SIZE);
            let below = warp::shfl_idx(FULL_MASK, sum - count, warp, WARP_SIZE);
            (below, all)
        }
    }

    /// Writes the columns of the bits in the warp's words to `to`, of the layout that spreads
    /// neighbours over words. The positions of a group's bits are compacted in shared memory first,
    /// so that the warp writes whole sectors.
    ///
    /// # Safety
    ///
    /// As for [`word`](Self::word); `to` has room for as many columns as were counted.
    #[inline(always)]
    unsafe fn write_dense(&self, warp: u32, warps: u32, origin: u32, to: GlobalMut<u32>) {
        let lane = warp::lane_id();
        let (start, end) = self.groups(warp, warps);
        let mut written = 0;
        // SAFETY: as many columns are written as were counted. The warp's places are its own,
        // synchronised between writes and reads; all lanes agree on `group` and the vote.
        unsafe {
            for group in start..end {
                let word = self.word(group);
                if !warp::any(FULL_MASK, word != 0) {
                    continue;
                }
                let (origin, to) = (origin + group * GROUP, to.offset(written as usize));
                let word = [transposed(word)];
                written += write_bits::<1, POSITIONS>(word, 32 * lane, self.positions, origin, to);
            }
        }
    }

    /// Writes the columns of the bits in the warp's words to `to`, of the layout where the bits of
    /// a word are neighbours. The warp lists words with bits, and writes out 32 of them together.
    ///
    /// # Safety
    ///
    /// As for [`write_dense`](Self::write_dense).
    #[inline(always)]
    unsafe fn write_sparse(&self, warp: u32, warps: u32, origin: u32, to: GlobalMut<u32>) {
        let lane = warp::lane_id();
        let (mut group, end) = self.groups(warp, warps);
        let list = self.positions.offset(SPARSE_POSITIONS as usize);
        let mut written = 0;
        // SAFETY: as many columns are written as were counted, and as many words are listed as a
        // list has room for. The warp's list and positions are its own, synchronised between writes
        // and reads; the loops run alike for all lanes, so all reach each shuffle.
        unsafe {
            while group < end {
                let listed_words = self.lane_words(group, end);
                let words = compact_bits(listed_words, LISTED_BITS * lane, list);
                let bitmap = self.bitmap.offset((group * WARP_SIZE) as usize);
                let origin = origin + group * GROUP;
                let mut first_word = 0;
                while first_word < words {
                    let (mut index, mut word) = (0, 0);
                    if first_word + lane < words {
                        index = u32::from(list.load((first_word + lane) as usize));
                        word = bitmap.load(index as usize);
                    }
                    let to = to.offset(written as usize);
                    written += write_bits::<1, SPARSE_POSITIONS>(
                        [word],
                        32 * index,
                        self.positions,
                        origin,
                        to,
                    );
                    first_word += WARP_SIZE;
                }
                group += LISTED_GROUPS;
            }
        }
    }
}

const _: () = assert!(LONG_ROW_LIST_WORDS == 32 && 32_u32.is_multiple_of(LISTED_BITS));
