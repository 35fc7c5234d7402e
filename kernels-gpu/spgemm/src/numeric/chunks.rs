//! Numeric, for long rows: chunks of some thousand entries, a block each.
//!
//! The columns of the row are known, so it can be divided into chunks of equal numbers of entries with
//! ascending columns. A block cuts each row of B to its chunk's columns by binary search, and adds
//! up the products in shared memory ([`balanced_products`]). However long a row is, many blocks
//! share it.
//!
//! A product's accumulator is the rank of its column in the chunk. [`rank_chunks`] has a bitmap of
//! the chunk's columns and, for each word, the number of columns before it: two loads and a count
//! of bits. [`search_chunks`] is for chunks that span too many columns for a bitmap. It has an index
//! of buckets of columns, and finds the rank by binary search in the column's bucket.
//!
//! ```text
//! columns of the chunk     3  5 36 38 39
//! distance from the first  0  2 33 35 36
//! bitmap, bit 0 first      1010 0000 ..  | 0101 1000 ..
//! columns before the word  0             | 2
//! rank of column 38        2 + one bit before bit 3 of word 1 = 3
//! ```

use crate::products::balanced_products::{self, BalancedProducts};
use crate::products::bucket_index::BucketIndex;
use crate::products::column_buckets::ColumnBuckets;
use crate::products::operands::{Factors, OperandPatterns, OutputPattern, RowList};
use crate::products::search::SortedAccumulators;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Columns per thread whose loads are in flight together.
const UNROLL: usize = 4;

/// Maximum bytes of shared memory of a block beside its entries and ranks: the staged nonzeros of
/// A.
pub const fn staging_bytes(element_bytes: u32) -> u32 {
    balanced_products::bytes(balanced_products::MAX_THREADS, element_bytes)
        + balanced_products::STATIC_BYTES
}

/// The launch of blocks whose entries and ranks take `entry_bytes`. The fewer of them fit the 227
/// KiB of a multiprocessor, the more threads they have, up to what the registers allow.
fn launch<T>(chunks: u32, entry_bytes: u32) -> LaunchConfig {
    let block = match entry_bytes >> 10 {
        0..=28 => 256,
        29..=67 => 512,
        68..=102 if size_of::<T>() > 4 => 512,
        68..=102 => 768,
        _ => balanced_products::MAX_THREADS,
    };
    let shared_bytes = entry_bytes + balanced_products::bytes(block, size_of::<T>() as u32);
    LaunchConfig::new(chunks, block).shared_bytes(shared_bytes)
}

/// The launch of [`rank_chunks`] for this many chunks of at most `capacity` entries, with bitmaps
/// of `words` words.
pub fn launch_rank<T: Real>(chunks: u32, capacity: u32, words: u32) -> LaunchConfig {
    launch::<T>(chunks, capacity * size_of::<T>() as u32 + 6 * words)
}

/// The launch of [`search_chunks`] for this many chunks of at most `capacity` entries.
pub fn launch_search<T: Real>(chunks: u32, capacity: u32) -> LaunchConfig {
    launch::<T>(chunks, search_bytes(capacity, size_of::<T>() as u32))
}

/// Entries that a searched chunk may have for each bucket of its index.
const ENTRIES_PER_BUCKET: u32 = 2;

/// Bytes of shared memory for `capacity` entries of a searched chunk: an accumulator, a column, and
/// a share of the index.
pub const fn search_bytes(capacity: u32, element_bytes: u32) -> u32 {
    capacity * (element_bytes + 4) + capacity / ENTRIES_PER_BUCKET * 4
}

/// A chunk of a row of C.
pub(crate) struct Chunk {
    /// Its first entry of C.
    pub start: u32,
    /// The number of its entries.
    pub count: u32,
    /// Their columns.
    pub columns: Global<u32>,
    /// The row's nonzeros of A, from the first to before the second position.
    pub nonzeros: (u32, u32),
    /// Its first and last column; `None` if it is the row's only chunk.
    pub window: Option<(u32, u32)>,
}

impl Chunk {
    /// The chunk of the calling block.
    ///
    /// # Safety
    ///
    /// `operands` is valid (see [`OperandPatterns`]), and `c` is the pattern of their product. The
    /// items are chunks of `chunk_entries` entries, one per block.
    #[inline(always)]
    pub unsafe fn load(
        operands: &OperandPatterns,
        items: RowList,
        chunk_entries: u32,
        c: &OutputPattern,
    ) -> Self {
        // SAFETY: there is a block per item; the chunk has at least one entry, so `count - 1` is
        // one of its columns.
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

    /// The products of the chunk, to be added up.
    #[inline(always)]
    fn products<'a, T>(
        &self,
        operands: &'a OperandPatterns,
        factors: Factors<T>,
    ) -> BalancedProducts<'a, T> {
        BalancedProducts {
            operands,
            factors,
            nonzeros: self.nonzeros,
            window: self.window,
        }
    }
}

/// The values of each listed chunk, with ranks by a bitmap. A block takes a chunk of
/// `chunk_entries` entries, or a whole row of at most `capacity`.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The items are chunks whose columns span at most
/// `32 * words` columns, for the `words` of the launch. `c` is the pattern of their product (see
/// [`OutputPattern`]), and `values` has room for its entries. The launch is [`launch_rank`]'s.
#[kernel(name = "spgemm_rank_chunks", T = [f32, f64])]
pub unsafe fn rank_chunks<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    capacity: u32,
    chunk_entries: u32,
    c: OutputPattern,
    values: GlobalMut<T>,
) {
    let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let sums = shared::dynamic_shared_mem::<T>();
    let room = sums.offset(capacity as usize);
    let room_bytes = balanced_products::bytes(threads, size_of::<T>() as u32);
    let bitmap = room.cast::<u8>().offset(room_bytes as usize).cast::<u32>();
    // SAFETY: there is a block per item; a product's column is one of the chunk's, so its rank is
    // below `count`. The block synchronises between writes and reads of sums and ranks.
    unsafe {
        let chunk = Chunk::load(&operands, items, chunk_entries, &c);
        let (start, count) = (chunk.start, chunk.count);
        let first = chunk.columns.load(0);
        let ranks = ColumnRanks::clear(bitmap, &chunk);
        // `capacity` is a multiple of four, so whole vectors fit.
        let mut i = 4 * t;
        while i < count {
            sums.store4(i as usize, [T::ZERO; 4]);
            i += 4 * threads;
        }
        thread::sync_threads();
        ranks.fill(chunk.columns, count, first, |i, column| {
            c.write_column(start + i, column);
        });
        thread::sync_threads();
        let products = chunk.products(&operands, factors);
        products.accumulate(room, sums, |column| ranks.of(column - first));
        let mut i = t;
        while i < count {
            values.store((start + i) as usize, sums.load(i as usize));
            i += threads;
        }
    }
}

/// The ranks of a chunk's columns: a bitmap, and for each word with columns the number of columns
/// before it. Six bytes for 32 columns.
pub(crate) struct ColumnRanks {
    bitmap: Shared<u32>,
    before: Shared<u16>,
}

impl ColumnRanks {
    /// Clears the bitmap for a chunk. This is the calling thread's share.
    ///
    /// # Safety
    ///
    /// `bitmap` has six bytes for each 32 columns of the chunk's span.
    #[inline(always)]
    pub unsafe fn clear(bitmap: Shared<u32>, chunk: &Chunk) -> Self {
        // SAFETY: a chunk has at least one column; `word` is below the words of its span.
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

    /// The rank of a column, given its distance from the chunk's first column.
    ///
    /// # Safety
    ///
    /// It is a column of the chunk; [`fill`](Self::fill) has run, and the block has synchronised.
    #[inline(always)]
    pub unsafe fn of(&self, bit: u32) -> usize {
        let word = (bit / 32) as usize;
        // SAFETY: the column is one of the chunk's, by the contract, so its word is filled.
        let (bits, before) = unsafe { (self.bitmap.load(word), self.before.load(word)) };
        let below = bits & ((1 << (bit % 32)) - 1);
        usize::from(before) + below.count_ones() as usize
    }

    /// Fills the bitmap and the counts from the chunk's `count` columns, and passes each column
    /// with its rank to `put`. All threads of the block take part.
    ///
    /// Neighbouring lanes set bits of one word, and their atomic operations are serialised. Joining
    /// the bits by shuffles first takes three times as many instructions.
    ///
    /// # Safety
    ///
    /// `columns` are those of the chunk that the bitmap was cleared for, `first` is the first of
    /// them, and the block has synchronised.
    #[inline(always)]
    pub unsafe fn fill(
        &self,
        columns: Global<u32>,
        count: u32,
        first: u32,
        put: impl Fn(u32, u32),
    ) {
        let (lane, threads) = (warp::lane_id(), thread::block_dim_x());
        let mut start = thread::thread_idx_x() - lane;
        while start < count {
            // SAFETY: a column past the last one is the last one again; words are those of the
            // chunk's span. One thread writes each count: that of the first column in the word. All
            // lanes of the warp reach the shuffle, as `start` and `count` are the same for them.
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

/// The values of each listed chunk, with ranks by binary search. A block takes a chunk, as in
/// [`rank_chunks`].
///
/// # Safety
///
/// As for [`rank_chunks`], for chunks of any span; `capacity` is a power of two. The launch is
/// [`launch_search`]'s.
#[kernel(name = "spgemm_search_chunks", T = [f32, f64])]
pub unsafe fn search_chunks<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    capacity: u32,
    chunk_entries: u32,
    c: OutputPattern,
    values: GlobalMut<T>,
) {
    let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let accumulators = SortedAccumulators::<T>::in_shared_memory(0, capacity);
    // SAFETY: there is a block per item; a product's column is one of the chunk's. The block
    // synchronises between writes and reads of the sums.
    unsafe {
        let chunk = Chunk::load(&operands, items, chunk_entries, &c);
        let (start, count) = (chunk.start, chunk.count);
        accumulators.load(&c, chunk.columns, [start, count], [t, threads]);
        thread::sync_threads();
        let (first, last) = (
            accumulators.columns.load(0),
            accumulators.columns.load(count as usize - 1),
        );
        let bucket_count = capacity / ENTRIES_PER_BUCKET;
        let index = BucketIndex {
            buckets: ColumnBuckets::new(first, last - first + 1, bucket_count),
            columns: accumulators.columns,
            ranges: accumulators.columns.offset(capacity as usize),
        };
        index.fill(count, [t, threads]);
        thread::sync_threads();
        let room = index.ranges.offset(bucket_count as usize).cast::<T>();
        let products = chunk.products(&operands, factors);
        products.accumulate(room, accumulators.sums, |column| index.position(column));
        accumulators.write(values.offset(start as usize), count, t, threads);
    }
}
