//! Numeric, long rows: chunks of some thousand entries, a block each.
//!
//! The columns of the row are known, so it can be cut into chunks of the same number of entries, whose columns follow each
//! other; a block adds up the products whose columns lie in its chunk, in shared memory, and finds the part of each row of B
//! by binary search. However long a row is, it is the work of many blocks.
//!
//! The place of a product is the rank of its column: a bitmap of the chunk's columns, and for each word the number of
//! columns before it, give it with two loads and a count of bits. Where the chunk spans too many columns for that, it is
//! searched for.

use super::operands::{Factors, Items, Operands, Structure};
use super::search::Entries;
use super::walk::{LIST_WORDS, Walk};
use super::work::WORK;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Nonzeros of A whose rows of B a block cuts to its chunk at a time.
const NONZEROS: u32 = 1024;

/// Bytes of shared memory of a block beside its entries and ranks: what it cuts out of rows of B, and a list.
pub const REST_BYTES: u32 = 8 * NONZEROS + 4 * LIST_WORDS;

/// The launch of blocks of so much shared memory: the fewer fit a multiprocessor of 227 KiB, the more threads they have, as many
/// as there are registers for.
fn launch<T>(chunks: u32, shared_bytes: u32) -> LaunchConfig {
    let block = match shared_bytes >> 10 {
        0..=28 => 256,
        29..=75 => 512,
        76..=112 if size_of::<T>() > 4 => 512,
        76..=112 => 768,
        _ => 1024,
    };
    LaunchConfig::new(chunks, block).shared_bytes(shared_bytes)
}

/// The launch of [`rank_chunks`] for that many chunks of up to `capacity` entries with bitmaps of `words` words.
pub fn launch_rank<T: Real>(chunks: u32, capacity: u32, words: u32) -> LaunchConfig {
    launch::<T>(chunks, capacity * size_of::<T>() as u32 + 6 * words)
}

/// The launch of [`search_chunks`].
pub fn launch_search<T: Real>(chunks: u32, capacity: u32) -> LaunchConfig {
    launch::<T>(chunks, Entries::<T>::bytes(capacity))
}

/// A chunk: its entries in C, from one to before another, their columns, and the walk of its products.
struct Chunk<'a, T> {
    start: u32,
    end: u32,
    columns: Global<u32>,
    walk: Walk<'a, T>,
}

/// The chunk of the block.
#[inline(always)]
unsafe fn chunk<'a, T: Real>(
    operands: &'a Operands,
    factors: Factors<T>,
    items: Items,
    chunk_entries: u32,
    work: Global<u32>,
    c: Structure,
    list: Option<Shared<u32>>,
) -> Chunk<'a, T> {
    // SAFETY: rows of the matrices, entries of C.
    unsafe {
        let [row, chunk] = items.load(thread::block_idx_x());
        let (row_start, row_end) = c.row(row);
        let start = row_start + chunk * chunk_entries;
        let end = start + (row_end - start).min(chunk_entries);
        let products = work.load(WORK * row as usize);
        let whole = row_end - row_start <= chunk_entries;
        let columns = c.columns(row).offset((start - row_start) as usize);
        let window = if whole {
            None
        } else {
            Some((columns.load(0), columns.load((end - start) as usize - 1)))
        };
        let chunks = (row_end - row_start).div_ceil(chunk_entries);
        Chunk {
            start,
            end,
            columns,
            walk: Walk {
                operands,
                factors,
                nonzeros: operands.a.row(row),
                products: products / chunks,
                warp: thread::thread_idx_x() / WARP_SIZE,
                warps: thread::block_dim_x() / WARP_SIZE,
                window,
                found: None,
                list,
            },
        }
    }
}

impl<T: Real> Chunk<'_, T> {
    /// Calls `each` for the column and the product of each product of the chunk; the whole block takes part. The part of each row
    /// of B is searched for once, each thread for that of a nonzero of A, and put into `found`: left to the warps, which share
    /// the products of a nonzero, each of them would search for all.
    #[inline(always)]
    unsafe fn each(self, found: Shared<u32>, mut each: impl FnMut(u32, T)) {
        let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        let (mut start, end) = self.walk.nonzeros;
        let nonzeros = end - start;
        // SAFETY: nonzeros of the row; the block synchronises between writes and reads of what was found.
        unsafe {
            while start < end {
                let count = (end - start).min(NONZEROS);
                let mut i = t;
                while i < count {
                    let nonzero = self.walk.load::<false>(start + i, end);
                    found.store2(2 * i as usize, [nonzero.start, nonzero.len]);
                    i += threads;
                }
                if t == 0
                    && let Some(list) = self.walk.list
                {
                    list.store(0, 0);
                }
                thread::sync_threads();
                let share = u64::from(self.walk.products) * u64::from(count) / u64::from(nonzeros);
                let walk = Walk {
                    nonzeros: (start, start + count),
                    products: share as u32,
                    found: Some(found),
                    ..self.walk
                };
                walk.each::<32, true>(&mut each);
                thread::sync_threads();
                start += count;
            }
        }
    }
}

/// The values of chunks of `chunk_entries` entries or, of a row that has no more, `capacity`, by their ranks in a bitmap; a
/// block a chunk.
///
/// # Safety
///
/// The operands are what they say; the items are chunks whose columns span no more than `words` times 32 columns; `work` is
/// `row_work`'s, `c` the product's structure, `values` its values. The launch is [`launch_rank`]'s.
#[kernel(name = "spgemm_rank_chunks", T = [f32, f64])]
pub unsafe fn rank_chunks<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    capacity: u32,
    chunk_entries: u32,
    work: Global<u32>,
    c: Structure,
    values: GlobalMut<T>,
) {
    let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let found = shared_array!(u32; 2048);
    let sums = shared::dynamic_shared_mem::<T>();
    let bitmap = sums.offset(capacity as usize).cast::<u32>();
    // SAFETY: entries of C; the block synchronises between writes and reads of sums and ranks.
    unsafe {
        // A list for very long rows of B would take the registers of the second block of a multiprocessor.
        let chunk = chunk(&operands, factors, items, chunk_entries, work, c, None);
        let (columns, start) = (chunk.columns, chunk.start);
        let count = chunk.end - start;
        let first = columns.load(0);
        let words = (columns.load(count as usize - 1) - first) / 32 + 1;
        let ranks = Ranks {
            bitmap,
            before: bitmap.offset(words as usize).cast::<u16>(),
        };
        let mut word = t;
        while word < words {
            bitmap.store(word as usize, 0);
            word += threads;
        }
        let mut i = t;
        while i < count {
            sums.store(i as usize, T::ZERO);
            i += threads;
        }
        thread::sync_threads();
        ranks.make(columns, count, first, |i, column| {
            c.put(start + i, column);
        });
        thread::sync_threads();
        chunk.each(found, |column, product| {
            sums.atomic_add(ranks.of(column - first), product);
        });
        let mut i = t;
        while i < count {
            values.store((start + i) as usize, sums.load(i as usize));
            i += threads;
        }
    }
}

/// A bitmap of a chunk's columns, and of each word that has one the columns before it: six bytes for 32 columns.
struct Ranks {
    bitmap: Shared<u32>,
    before: Shared<u16>,
}

impl Ranks {
    /// The rank of a column that is one of them, given its distance from the first.
    #[inline(always)]
    unsafe fn of(&self, bit: u32) -> usize {
        let word = (bit / 32) as usize;
        // SAFETY: a word that has been made.
        let (bits, before) = unsafe { (self.bitmap.load(word), self.before.load(word)) };
        let below = bits & ((1 << (bit % 32)) - 1);
        usize::from(before) + below.count_ones() as usize
    }

    /// Makes them of `count` columns from `first` on, the bitmap zero, and hands each to `put`. Lanes have neighbouring columns, so that those of a word
    /// join their bits in five shuffles; two warps at most have columns of one word.
    #[inline(always)]
    unsafe fn make(&self, columns: Global<u32>, count: u32, first: u32, put: impl Fn(u32, u32)) {
        let lane = warp::lane_id();
        let mut start = thread::thread_idx_x() - lane;
        // SAFETY: a column of the chunk.
        let column = |i: u32| unsafe { columns.load(i.min(count - 1) as usize) };
        let mut next = column(start + lane);
        while start < count {
            let i = start + lane;
            start += thread::block_dim_x();
            // SAFETY: columns of the chunk; all lanes of the warp are here together.
            unsafe {
                let bit = next - first;
                if i < count {
                    put(i, next);
                }
                next = column(start + lane);
                let word = bit / 32;
                let below = warp::shfl_up(FULL_MASK, word, 1, WARP_SIZE);
                let heads = warp::ballot(FULL_MASK, lane == 0 || word != below);
                // Lanes of the same word that are below this one.
                let behind = lane - (31 - (heads & (u32::MAX >> (31 - lane))).leading_zeros());
                let mut bits = 1 << (bit % 32);
                let mut delta = 1;
                while delta < WARP_SIZE {
                    let others = warp::shfl_up(FULL_MASK, bits, delta, WARP_SIZE);
                    if behind >= delta {
                        bits |= others;
                    }
                    delta *= 2;
                }
                // The last lane of a word has all its bits.
                if heads >> lane >> 1 & 1 == 1 || lane == WARP_SIZE - 1 {
                    self.bitmap.atomic_or(word as usize, bits);
                }
                if behind == 0 && i < count {
                    let is_first = i == 0 || lane > 0 || { (column(i - 1) - first) / 32 != word };
                    if is_first {
                        self.before.store(word as usize, i as u16);
                    }
                }
            }
        }
    }
}

/// The values of chunks of `chunk_entries` entries or, of a row that has no more, `capacity`, searched for; a block a chunk.
///
/// # Safety
///
/// As for [`rank_chunks`], whatever columns the chunks span; `capacity` is a power of two. The launch is
/// [`launch_search`]'s.
#[kernel(name = "spgemm_search_chunks", T = [f32, f64])]
pub unsafe fn search_chunks<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    capacity: u32,
    chunk_entries: u32,
    work: Global<u32>,
    c: Structure,
    values: GlobalMut<T>,
) {
    let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let entries = Entries::<T>::of_team(0, capacity);
    // SAFETY: entries of C; the block synchronises between writes and reads of the sums.
    unsafe {
        let list = shared_array!(u32; 32);
        let found = shared_array!(u32; 2048);
        let chunk = chunk(
            &operands,
            factors,
            items,
            chunk_entries,
            work,
            c,
            Some(list),
        );
        let start = chunk.start;
        let count = chunk.end - start;
        entries.load(&c, chunk.columns, [start, count], [t, threads]);
        thread::sync_threads();
        chunk.each(found, |column, product| {
            entries.sums.atomic_add(entries.place(column), product);
        });
        entries.write(values.offset(start as usize), count, t, threads);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> Vec<&'static str> {
    [
        rank_chunks::<f32>().entry_points(),
        search_chunks::<f32>().entry_points(),
    ]
    .concat()
}

const _: () = assert!(LIST_WORDS == 32 && NONZEROS == 1024);
