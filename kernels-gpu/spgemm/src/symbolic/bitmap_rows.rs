//! Symbolic, long rows: a bitmap of the row's columns in shared memory.
//!
//! A product costs one atomic operation and no probing, and a bitmap is in order by itself: what is left of the sort is to
//! count bits. 100000 columns take 12.5 KB; a row with a wider span than the bitmap has bits is done in windows, with
//! the part of each row of B found by binary search, so that there is no row that is too long.
//!
//! Neighbouring columns are in neighbouring words, as lanes come with neighbouring columns, and atomic operations on one word
//! are done one after the other: of 1024 columns, column `32 i + j` is bit i of word j. Where the bits are read, a warp
//! transposes them in five shuffles.
//!
//! Where a row has few products in a wide span, most words have no bits, and to transpose them took most of the time. There the 32
//! columns of a word are neighbours, of which such a row has few; a warp looks through the words, and writes out those with bits 32
//! at a time. On an H200 the symbolic phase of a cube's stencil, a million rows of 705 products and 120 entries in 41000 columns,
//! takes 4.6 ms so, with rows of B numbered through as [`walk`](crate::products::walk) says, and took 8.2; that of planted communities, 200000 rows of
//! 1600 products, 6.5 ms and 8.2.
//!
//! With at most 40 registers three blocks of 512 threads fit a multiprocessor; left alone the assembler takes 48, two blocks, and
//! the long rows of R-MAT .57, 100000 rows, then take 1.3 ms and not 1.0.

use crate::products::bins::WORK;
use crate::products::lanes::inclusive_sum;
use crate::products::operands::{Items, Operands};
use crate::products::walk::{LIST_WORDS, Walk};
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

/// Words that have bits and wait for a warp to write them out, at most.
const WAITING: u32 = 2 * WARP_SIZE;

/// Bytes of shared memory beside the bitmap: the places of a group's bits, and a count, for each warp.
const fn rest_bytes(block: u32) -> u32 {
    block / WARP_SIZE * (2 * GROUP + 4)
}

/// Threads of a block of a row of few products: more where the bitmap is so large that few blocks fit a multiprocessor.
const fn narrow_block(words: u32) -> u32 {
    match words {
        0..=2048 => 64,
        2049..=4096 => 128,
        _ => 256,
    }
}

/// The launch for that many rows with bitmaps of that many words.
pub fn launch(rows: u32, words: u32) -> LaunchConfig {
    let block = block(words);
    LaunchConfig::new(rows, block).shared_bytes(4 * words + rest_bytes(block))
}

/// The launch for that many rows of few products.
pub fn launch_narrow(rows: u32, words: u32) -> LaunchConfig {
    let block = narrow_block(words);
    let waiting_bytes = block / WARP_SIZE * 4 * WAITING;
    LaunchConfig::new(rows, block).shared_bytes(4 * words + rest_bytes(block) + waiting_bytes)
}

/// The columns of rows, ascending, and their number; a block a row, with a bitmap of `words` words, a multiple of 32.
///
/// # Safety
///
/// The operands are what they say; `work` is `row_work`'s. `staged` has room for each row's entries from `starts[row]` on,
/// `entries` a number for each row. The launch is [`launch`]'s, or with `NARROW` 1 [`launch_narrow`]'s.
#[kernel(name = "spgemm_bitmap_rows", NARROW = [0, 1], registers = 40)]
pub unsafe fn bitmap_rows<const NARROW: u32>(
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
    let all_places = counts.offset(warps as usize).cast::<u16>();
    let places = all_places.offset((warp * GROUP) as usize);
    let waiting = all_places
        .offset((warps * GROUP) as usize)
        .cast::<u32>()
        .offset((warp * WAITING) as usize);
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
            let mut word = 4 * t;
            while word < used {
                bitmap.store4(word as usize, [0; 4]);
                word += 4 * thread::block_dim_x();
            }
            thread::sync_threads();
            walk.each::<32, false>(|column, _| {
                let bit = column - origin;
                if NARROW == 1 {
                    bitmap.atomic_or((bit / 32) as usize, 1 << (bit % 32));
                } else {
                    let word = bit / GROUP * WARP_SIZE + bit % WARP_SIZE;
                    bitmap.atomic_or(word as usize, 1 << (bit / 32 % 32));
                }
            });
            thread::sync_threads();
            let part = Part {
                bitmap,
                used,
                counts,
                waiting,
                places,
            };
            let (below, all) = part.count(warp, warps);
            let to = staged.offset(to + (found + below) as usize);
            if NARROW == 1 {
                part.write_out_scattered(warp, warps, origin, to);
            } else {
                part.write_out(warp, warps, origin, to);
            }
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
    /// The warp's list of words that wait; of narrow rows alone.
    waiting: Shared<u32>,
    places: Shared<u16>,
}

impl Part {
    /// The groups of 32 words of a warp, from one to before another.
    #[inline(always)]
    fn groups(&self, warp: u32, warps: u32) -> (u32, u32) {
        let groups = self.used.div_ceil(WARP_SIZE);
        let each = groups.div_ceil(warps.max(1));
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
                let word = self.word(group);
                if !warp::any(FULL_MASK, word != 0) {
                    continue;
                }
                let all = self.put_together(transposed(word));
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

    /// The same where most words have no bits and the bits of a word are neighbours: words with bits wait until there are as many as
    /// lanes, and are then written out together.
    #[inline(always)]
    unsafe fn write_out_scattered(&self, warp: u32, warps: u32, origin: u32, to: GlobalMut<u32>) {
        let lane = warp::lane_id();
        let (mut group, end) = self.groups(warp, warps);
        let (mut waiting, mut written) = (0, 0);
        // SAFETY: words of the bitmap, the warp's list and places, and as many columns as were counted; all lanes of the warp
        // are here.
        unsafe {
            loop {
                while group < end && waiting < WARP_SIZE {
                    let has_bits = self.word(group) != 0;
                    let have_bits = warp::ballot(FULL_MASK, has_bits);
                    if has_bits {
                        let place = waiting + (have_bits & ((1 << lane) - 1)).count_ones();
                        self.waiting.store(place as usize, group * WARP_SIZE + lane);
                    }
                    waiting += have_bits.count_ones();
                    group += 1;
                }
                if waiting == 0 {
                    return;
                }
                warp::sync_warp(FULL_MASK);
                let (mut index, mut word) = (0, 0);
                if lane < waiting {
                    index = self.waiting.load(lane as usize);
                    word = self.bitmap.load(index as usize);
                }
                let is_left = lane + WARP_SIZE < waiting;
                let mut left = 0;
                if is_left {
                    left = self.waiting.load((lane + WARP_SIZE) as usize);
                }
                let all = self.put_together(word);
                if is_left {
                    self.waiting.store(lane as usize, left);
                }
                waiting = waiting.saturating_sub(WARP_SIZE);
                let mut first = 0;
                while first < all {
                    let i = first + lane;
                    let bit = if i < all {
                        u32::from(self.places.load(i as usize))
                    } else {
                        0
                    };
                    let index = warp::shfl_idx(FULL_MASK, index, bit / 32, WARP_SIZE);
                    if i < all {
                        let column = origin + 32 * index + bit % 32;
                        to.store((written + i) as usize, column);
                    }
                    first += WARP_SIZE;
                }
                warp::sync_warp(FULL_MASK);
                written += all;
            }
        }
    }

    /// Puts the numbers of the bits in the warp's words beside each other, 32 for each lane, and gives how many there are.
    #[inline(always)]
    unsafe fn put_together(&self, word: u32) -> u32 {
        let sum = inclusive_sum::<32>(FULL_MASK, word.count_ones());
        let mut place = sum - word.count_ones();
        let mut word = word;
        while word != 0 {
            let bit = warp::lane_id() * 32 + word.trailing_zeros();
            // SAFETY: there is room for all bits.
            unsafe { self.places.store(place as usize, bit as u16) };
            word &= word - 1;
            place += 1;
        }
        warp::sync_warp(FULL_MASK);
        warp::shfl_idx(FULL_MASK, sum, WARP_SIZE - 1, WARP_SIZE)
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

const _: () = assert!(LIST_WORDS == 32);
