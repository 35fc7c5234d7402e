//! Numeric, long rows: chunks of some thousand entries, a block each.
//!
//! The columns of the row are known, so it can be cut into chunks of the same number of entries, whose columns follow each
//! other; a block adds up the products whose columns lie in its chunk, in shared memory, and finds the part of each row of B
//! by binary search. However long a row is, it is the work of many blocks.
//!
//! The place of a product is the rank of its column: a bitmap of the chunk's columns, and for each word the number of
//! columns before it, give it with two loads and a count of bits. Where the chunk spans too many columns for that, it is
//! searched for.

use crate::products::even_walk::{self, EvenWalk};
use crate::products::operands::{Factors, Items, Operands, Structure};
use crate::products::search::Entries;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Columns of a thread whose loads are in flight together.
const UNROLL: usize = 4;

/// Bytes of shared memory of a block beside its entries and ranks, at most.
pub const fn rest_bytes(element_bytes: u32) -> u32 {
    even_walk::bytes(even_walk::MOST_THREADS, element_bytes) + even_walk::STATIC_BYTES
}

/// The launch of blocks whose entries and ranks have so many bytes: the fewer fit a multiprocessor of 227 KiB, the more threads
/// they have, as many as there are registers for.
fn launch<T>(chunks: u32, entry_bytes: u32) -> LaunchConfig {
    let block = match entry_bytes >> 10 {
        0..=28 => 256,
        29..=67 => 512,
        68..=102 if size_of::<T>() > 4 => 512,
        68..=102 => 768,
        _ => even_walk::MOST_THREADS,
    };
    let shared_bytes = entry_bytes + even_walk::bytes(block, size_of::<T>() as u32);
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

/// A chunk of a row of C.
pub(crate) struct Chunk {
    /// Its first entry in C.
    pub start: u32,
    /// How many there are.
    pub count: u32,
    /// Their columns.
    pub columns: Global<u32>,
    /// The row's nonzeros in A, start and end.
    pub nonzeros: (u32, u32),
    /// The first and the last column, if the row has other chunks.
    pub window: Option<(u32, u32)>,
}

impl Chunk {
    /// The chunk of the block.
    ///
    /// # Safety
    ///
    /// The items are chunks of `chunk_entries` entries of the rows of `c`, the operands' product.
    #[inline(always)]
    pub unsafe fn load(
        operands: &Operands,
        items: Items,
        chunk_entries: u32,
        c: &Structure,
    ) -> Self {
        // SAFETY: rows of the matrices, entries of C.
        unsafe {
            let [row, chunk] = items.load(thread::block_idx_x());
            let (row_start, row_end) = c.row(row);
            let start = row_start + chunk * chunk_entries;
            let count = (row_end - start).min(chunk_entries);
            let whole = row_end - row_start <= chunk_entries;
            let columns = c.columns(row).offset((start - row_start) as usize);
            let window = if whole {
                None
            } else {
                Some((columns.load(0), columns.load(count as usize - 1)))
            };
            Self {
                start,
                count,
                columns,
                nonzeros: operands.a.row(row),
                window,
            }
        }
    }

    /// The walk of its products.
    #[inline(always)]
    fn walk<'a, T>(&self, operands: &'a Operands, factors: Factors<T>) -> EvenWalk<'a, T> {
        EvenWalk {
            operands,
            factors,
            nonzeros: self.nonzeros,
            window: self.window,
        }
    }
}

/// The values of chunks of `chunk_entries` entries or, of a row that has no more, `capacity`, by their ranks in a bitmap; a
/// block a chunk.
///
/// # Safety
///
/// The operands are what they say; the items are chunks whose columns span no more than `words` times 32 columns; `c` is the
/// product's structure, `values` its values. The launch is [`launch_rank`]'s.
#[kernel(name = "spgemm_rank_chunks", T = [f32, f64])]
pub unsafe fn rank_chunks<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    capacity: u32,
    chunk_entries: u32,
    c: Structure,
    values: GlobalMut<T>,
) {
    let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let sums = shared::dynamic_shared_mem::<T>();
    let room = sums.offset(capacity as usize);
    let room_bytes = even_walk::bytes(threads, size_of::<T>() as u32);
    let bitmap = room.cast::<u8>().offset(room_bytes as usize).cast::<u32>();
    // SAFETY: entries of C; the block synchronises between writes and reads of sums and ranks.
    unsafe {
        let chunk = Chunk::load(&operands, items, chunk_entries, &c);
        let (start, count) = (chunk.start, chunk.count);
        let first = chunk.columns.load(0);
        let ranks = Ranks::clear(bitmap, &chunk);
        // The capacity is a multiple of four.
        let mut i = 4 * t;
        while i < count {
            sums.store4(i as usize, [T::ZERO; 4]);
            i += 4 * threads;
        }
        thread::sync_threads();
        ranks.make(chunk.columns, count, first, |i, column| {
            c.put(start + i, column);
        });
        thread::sync_threads();
        let walk = chunk.walk(&operands, factors);
        walk.add_up(room, sums, |column| ranks.of(column - first));
        let mut i = t;
        while i < count {
            values.store((start + i) as usize, sums.load(i as usize));
            i += threads;
        }
    }
}

/// A bitmap of a chunk's columns, and of each word that has one the columns before it: six bytes for 32 columns.
pub(crate) struct Ranks {
    bitmap: Shared<u32>,
    before: Shared<u16>,
}

impl Ranks {
    /// Those of a chunk that are to be made, their bitmap zero: what the thread does of it.
    ///
    /// # Safety
    ///
    /// There is room for six bytes for each word of the columns' span.
    #[inline(always)]
    pub unsafe fn clear(bitmap: Shared<u32>, chunk: &Chunk) -> Self {
        // SAFETY: columns of the chunk, words of the bitmap.
        unsafe {
            let first = chunk.columns.load(0);
            let words = (chunk.columns.load(chunk.count as usize - 1) - first) / 32 + 1;
            let mut word = thread::thread_idx_x();
            while word < words {
                bitmap.store(word as usize, 0);
                word += thread::block_dim_x();
            }
            Self {
                bitmap,
                before: bitmap.offset(words as usize).cast::<u16>(),
            }
        }
    }

    /// The rank of a column that is one of them, given its distance from the first.
    ///
    /// # Safety
    ///
    /// They have been made, and the block has synchronised.
    #[inline(always)]
    pub unsafe fn of(&self, bit: u32) -> usize {
        let word = (bit / 32) as usize;
        // SAFETY: a word that has been made.
        let (bits, before) = unsafe { (self.bitmap.load(word), self.before.load(word)) };
        let below = bits & ((1 << (bit % 32)) - 1);
        usize::from(before) + below.count_ones() as usize
    }

    /// Makes them of `count` columns from `first` on, the bitmap zero, and hands each to `put`; the whole block takes part.
    ///
    /// Neighbouring lanes have bits of one word, and their atomic operations on it are done one after the other. To join such
    /// bits by shuffles first took three times the instructions, a fifth of those of a chunk.
    ///
    /// # Safety
    ///
    /// The columns are those of the chunk that it was cleared for; the block has synchronised.
    #[inline(always)]
    pub unsafe fn make(
        &self,
        columns: Global<u32>,
        count: u32,
        first: u32,
        put: impl Fn(u32, u32),
    ) {
        let (lane, threads) = (warp::lane_id(), thread::block_dim_x());
        let mut start = thread::thread_idx_x() - lane;
        while start < count {
            // SAFETY: columns of the chunk, past the last one that again; words of the bitmap, of which one thread has the
            // first column; all lanes of the warp are here.
            unsafe {
                let some: [u32; UNROLL] = array::from_fn(|u| {
                    let i = start + u as u32 * threads + lane;
                    columns.load(i.min(count - 1) as usize)
                });
                #[allow(
                    clippy::needless_range_loop,
                    reason = "an iterator over the array is not unrolled, and puts it into local memory"
                )]
                for u in 0..UNROLL {
                    let i = start + lane;
                    let mut before = warp::shfl_up(FULL_MASK, some[u], 1, WARP_SIZE);
                    if i < count {
                        put(i, some[u]);
                        let bit = some[u] - first;
                        let word = bit / 32;
                        self.bitmap.atomic_or(word as usize, 1 << (bit % 32));
                        if lane == 0 && i > 0 {
                            before = columns.load(i as usize - 1);
                        }
                        if i == 0 || (before - first) / 32 != word {
                            self.before.store(word as usize, i as u16);
                        }
                    }
                    start += threads;
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
    c: Structure,
    values: GlobalMut<T>,
) {
    let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let entries = Entries::<T>::of_team(0, capacity);
    // SAFETY: entries of C; the block synchronises between writes and reads of the sums.
    unsafe {
        let chunk = Chunk::load(&operands, items, chunk_entries, &c);
        let (start, count) = (chunk.start, chunk.count);
        entries.load(&c, chunk.columns, [start, count], [t, threads]);
        thread::sync_threads();
        let room = entries.columns.offset(capacity as usize).cast::<T>();
        let walk = chunk.walk(&operands, factors);
        walk.add_up(room, entries.sums, |column| entries.place(column));
        entries.write(values.offset(start as usize), count, t, threads);
    }
}
