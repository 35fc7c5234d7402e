//! Numeric, long rows: chunks of some thousand entries, a block each.
//!
//! The columns of the row are known, so it can be cut into chunks of the same number of entries, whose columns follow each
//! other; a block adds up the products whose columns lie in its chunk, in shared memory, and finds the part of each row of B
//! by binary search. However long a row is, it is the work of many blocks.
//!
//! The place of a product is the rank of its column: a bitmap of the chunk's columns, and beside each word the number of
//! columns before it, give it with one load and a count of bits. Where the chunk spans too many columns for that, it is
//! searched for.

use super::operands::{Factors, Items, Operands, Structure};
use super::search::Entries;
use super::walk::Walk;
use super::work::WORK;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// The launch of blocks of so much shared memory: the fewer fit a multiprocessor of 227 KiB, the more threads they have.
fn launch(chunks: u32, shared_bytes: u32) -> LaunchConfig {
    let block = match shared_bytes >> 10 {
        0..=28 => 256,
        29..=113 => 512,
        _ => 1024,
    };
    LaunchConfig::new(chunks, block).shared_bytes(shared_bytes)
}

/// The launch of [`rank_chunks`] for that many chunks of up to `capacity` entries with bitmaps of `words` words.
pub fn launch_rank<T: Real>(chunks: u32, capacity: u32, words: u32) -> LaunchConfig {
    launch(chunks, capacity * size_of::<T>() as u32 + 8 * words)
}

/// The launch of [`search_chunks`].
pub fn launch_search<T: Real>(chunks: u32, capacity: u32) -> LaunchConfig {
    launch(chunks, Entries::<T>::bytes(capacity))
}

/// A chunk: its entries in C, from one to before another, and the walk of its products.
struct Chunk<'a, T> {
    start: u32,
    end: u32,
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
) -> Chunk<'a, T> {
    // SAFETY: rows of the matrices, entries of C.
    unsafe {
        let [row, chunk] = items.load(thread::block_idx_x());
        let (row_start, row_end) = c.row(row);
        let start = row_start + chunk * chunk_entries;
        let end = start + (row_end - start).min(chunk_entries);
        let products = work.load(WORK * row as usize);
        let whole = row_end - row_start <= chunk_entries;
        let window = if whole {
            None
        } else {
            let first = c.col_idx.load(start as usize);
            Some((first, c.col_idx.load(end as usize - 1)))
        };
        let chunks = (row_end - row_start).div_ceil(chunk_entries);
        Chunk {
            start,
            end,
            walk: Walk {
                operands,
                factors,
                nonzeros: operands.a.row(row),
                products: products / chunks,
                warp: thread::thread_idx_x() / WARP_SIZE,
                warps: thread::block_dim_x() / WARP_SIZE,
                window,
            },
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
    let sums = shared::dynamic_shared_mem::<T>();
    let ranks = sums.offset(capacity as usize).cast::<u32>();
    // SAFETY: entries of C; the block synchronises between writes and reads of sums and ranks.
    unsafe {
        let chunk = chunk(&operands, factors, items, chunk_entries, work, c);
        let columns = c.col_idx.offset(chunk.start as usize);
        let count = chunk.end - chunk.start;
        let first = columns.load(0);
        let words = (columns.load(count as usize - 1) - first) / 32 + 1;
        let mut word = t;
        while word < words {
            ranks.store2(2 * word as usize, [0, 0]);
            word += threads;
        }
        let mut i = t;
        while i < count {
            sums.store(i as usize, T::ZERO);
            i += threads;
        }
        thread::sync_threads();
        let mut i = t;
        while i < count {
            let word = (columns.load(i as usize) - first) / 32;
            // The first column of a word makes it.
            if i == 0 || (columns.load(i as usize - 1) - first) / 32 != word {
                let mut bits = 0;
                let mut next = i;
                while next < count {
                    let bit = columns.load(next as usize) - first;
                    if bit / 32 != word {
                        break;
                    }
                    bits |= 1 << (bit % 32);
                    next += 1;
                }
                ranks.store2(2 * word as usize, [bits, i]);
            }
            i += threads;
        }
        thread::sync_threads();
        chunk.walk.each::<32, true>(|column, product| {
            let bit = column - first;
            let [bits, before] = ranks.load2(2 * (bit / 32) as usize);
            let below = bits & ((1 << (bit % 32)) - 1);
            sums.atomic_add((before + below.count_ones()) as usize, product);
        });
        thread::sync_threads();
        let mut i = t;
        while i < count {
            values.store((chunk.start + i) as usize, sums.load(i as usize));
            i += threads;
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
        let chunk = chunk(&operands, factors, items, chunk_entries, work, c);
        let count = chunk.end - chunk.start;
        entries.load(c.col_idx.offset(chunk.start as usize), count, t, threads);
        thread::sync_threads();
        chunk.walk.each::<32, true>(|column, product| {
            entries.sums.atomic_add(entries.place(column), product);
        });
        thread::sync_threads();
        entries.write(values.offset(chunk.start as usize), count, t, threads);
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
