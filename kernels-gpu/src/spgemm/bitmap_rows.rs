//! Symbolic, long rows: a bitmap of the row's columns in shared memory.
//!
//! A product costs one atomic operation and no probing, and a bitmap is in order by itself: what is left of the sort is to
//! count bits. 100000 columns take 12.5 KB; a row with a wider span than the bitmap has bits is done in windows, with
//! the part of each row of B found by binary search, so that there is no row that is too long.
//!
//! Neighbouring columns are in neighbouring words, as lanes come with neighbouring columns, and atomic operations on one word
//! are done one after the other: of 1024 columns, column `32 i + j` is bit i of word j. Where the bits are read, a warp
//! transposes them in five shuffles.

use super::lanes::inclusive_sum;
use super::operands::{Items, Operands};
use super::walk::{LIST_WORDS, Walk};
use super::work::WORK;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Bits that a warp writes out together: a word a lane.
const GROUP: u32 = WARP_SIZE * 32;

/// Threads of a block: with bitmaps so large that one block has a multiprocessor for itself, it has as many as there may be.
const fn block(words: u32) -> u32 {
    if words > 20_000 { 1024 } else { 512 }
}

/// The words of a bitmap of so many columns, or of as many as there are in so much shared memory: a multiple of 32.
#[inline(always)]
pub fn words(columns: u32, shared_bytes: u32) -> u32 {
    let most = shared_bytes.saturating_sub(rest_bytes(1024) + 4 * LIST_WORDS) / 4;
    columns.div_ceil(GROUP).min(most / WARP_SIZE) * WARP_SIZE
}

/// Bytes of shared memory beside the bitmap: the places of a group's bits, and a count, for each warp.
const fn rest_bytes(block: u32) -> u32 {
    block / WARP_SIZE * (2 * GROUP + 4)
}

/// Threads of a block of a row of few products: more where the bitmap is so large that few blocks fit a multiprocessor.
const fn narrow_block(words: u32) -> u32 {
    if words > 4096 { 256 } else { 128 }
}

/// The launch for that many rows with bitmaps of that many words.
pub fn launch(rows: u32, words: u32, narrow: bool) -> LaunchConfig {
    let block = if narrow {
        narrow_block(words)
    } else {
        block(words)
    };
    LaunchConfig::new(rows, block).shared_bytes(4 * words + rest_bytes(block))
}

/// The columns of rows, ascending, and their number; a block a row, with a bitmap of `words` words, a multiple of 32.
///
/// # Safety
///
/// The operands are what they say; `work` is `row_work`'s. `staged` has room for each row's entries from `starts[row]` on,
/// `entries` a number for each row. The launch is [`launch`]'s.
#[kernel(name = "spgemm_bitmap_rows")]
pub unsafe fn bitmap_rows(
    operands: Operands,
    items: Items,
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
    let counts = bitmap.offset(words as usize);
    let places = counts
        .offset(warps as usize)
        .cast::<u16>()
        .offset((warp * GROUP) as usize);
    // SAFETY: rows of the matrices; the block synchronises between writes and reads of the bitmap and the counts.
    unsafe {
        let [row, _] = items.load(thread::block_idx_x());
        let [products, first, span, _] = work.load4(WORK * row as usize);
        let to = starts.load(row as usize) as usize;
        let mut walk = Walk::columns(&operands, row, products, [warp, warps]);
        walk.list = Some(list);
        let (mut covered, mut found) = (0, 0);
        while covered < span {
            let used = words.min((span - covered).div_ceil(GROUP) * WARP_SIZE);
            let origin = first + covered;
            if words < span.div_ceil(32) {
                walk.window = Some((origin, origin + (32 * used - 1).min(span - covered - 1)));
            }
            if t == 0 {
                list.store(0, 0);
            }
            let mut word = t;
            while word < used {
                bitmap.store(word as usize, 0);
                word += thread::block_dim_x();
            }
            thread::sync_threads();
            walk.each::<32, false>(|column, _| {
                let bit = column - origin;
                let word = bit / GROUP * WARP_SIZE + bit % WARP_SIZE;
                bitmap.atomic_or(word as usize, 1 << (bit / 32 % 32));
            });
            thread::sync_threads();
            let part = Part {
                bitmap,
                used,
                counts,
                places,
            };
            let mine = part.count(warp, warps);
            let (below, all) = mine;
            part.write_out(
                warp,
                warps,
                origin,
                staged.offset(to + (found + below) as usize),
            );
            found += all;
            // The last word may be one of which the span has but some bits.
            covered = covered.saturating_add(32 * used);
            thread::sync_threads();
        }
        if t == 0 {
            entries.store(row as usize, found);
        }
    }
}

/// The bitmap of a window, and what a warp wants besides.
struct Part {
    bitmap: Shared<u32>,
    used: u32,
    counts: Shared<u32>,
    places: Shared<u16>,
}

impl Part {
    /// The groups of 32 words of a warp, from one to before another.
    #[inline(always)]
    fn groups(&self, warp: u32, warps: u32) -> (u32, u32) {
        let groups = self.used.div_ceil(WARP_SIZE);
        let each = groups.div_ceil(warps);
        ((warp * each).min(groups), ((warp + 1) * each).min(groups))
    }

    /// The lane's word of a group.
    #[inline(always)]
    unsafe fn word(&self, group: u32) -> u32 {
        let word = group * WARP_SIZE + warp::lane_id();
        if word < self.used {
            // SAFETY: a word of the bitmap.
            unsafe { self.bitmap.load(word as usize) }
        } else {
            0
        }
    }

    /// The bits of all warps before this one, and of all; the whole block counts.
    #[inline(always)]
    unsafe fn count(&self, warp: u32, warps: u32) -> (u32, u32) {
        let (start, end) = self.groups(warp, warps);
        let mut bits = 0;
        // SAFETY: words of the bitmap, a count for each warp.
        unsafe {
            for group in start..end {
                bits += self.word(group).count_ones();
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

    /// Writes the columns of the warp's bits from `to` on: the places of a group's bits are put together in shared memory, so
    /// that they are written in one piece.
    #[inline(always)]
    unsafe fn write_out(&self, warp: u32, warps: u32, origin: u32, to: GlobalMut<u32>) {
        let lane = warp::lane_id();
        let (start, end) = self.groups(warp, warps);
        let mut written = 0;
        // SAFETY: words of the bitmap, the warp's places, and as many columns as were counted.
        unsafe {
            for group in start..end {
                let mut word = transposed(self.word(group));
                let sum = inclusive_sum::<32>(FULL_MASK, word.count_ones());
                let all = warp::shfl_idx(FULL_MASK, sum, WARP_SIZE - 1, WARP_SIZE);
                if all == 0 {
                    continue;
                }
                let mut place = sum - word.count_ones();
                while word != 0 {
                    let bit = lane * 32 + word.trailing_zeros();
                    self.places.store(place as usize, bit as u16);
                    word &= word - 1;
                    place += 1;
                }
                warp::sync_warp(FULL_MASK);
                let mut i = lane;
                while i < all {
                    let column = origin + group * GROUP + u32::from(self.places.load(i as usize));
                    to.store((written + i) as usize, column);
                    i += WARP_SIZE;
                }
                warp::sync_warp(FULL_MASK);
                written += all;
            }
        }
    }
}

/// The bits of the warp's words with lanes and positions exchanged: bit i of lane j becomes bit j of lane i.
#[inline(always)]
fn transposed(word: u32) -> u32 {
    let lane = warp::lane_id();
    let mut word = word;
    let mut distance = 16;
    let mut low = 0x0000_ffff_u32;
    while distance > 0 {
        let other = warp::shfl_xor(FULL_MASK, word, distance, WARP_SIZE);
        word = if lane & distance == 0 {
            word & low | (other & low) << distance
        } else {
            word & !low | (other & !low) >> distance
        };
        distance /= 2;
        low ^= low << distance;
    }
    word
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> &'static [&'static str] {
    bitmap_rows().entry_points()
}

const _: () = assert!(LIST_WORDS == 32);
