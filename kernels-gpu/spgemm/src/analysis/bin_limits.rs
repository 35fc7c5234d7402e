//! The limits between [`bins`](crate::products::bins): which kernel takes a row, by its products,
//! columns and entries.
//!
//! The tables of the bins stand in [`bins`](crate::products::bins) and [`numeric`], with the limits
//! of the default. This module has the limits as numbers, and the two functions that read them,
//! [`BinLimits::symbolic_bin`] and [`BinLimits::numeric_bin`].

use crate::numeric::chunks::{search_bytes, staging_bytes};
use crate::products::bins::{
    MAX_SEARCHED_ENTRIES, MAX_SORTED_PRODUCTS, MERGED_NONZEROS, RowWork, SEARCHED_ENTRIES,
    SORTED_PRODUCTS, SPARSE_BITMAP_PRODUCTS, numeric, symbolic,
};
use crate::symbolic::narrow_rows;
use crate::symbolic::sort_rows::MAX_SPAN;

/// Numeric: default words of a chunk's bitmap, for 327680 columns. Two blocks then fit a
/// multiprocessor.
const RANK_WORDS: u32 = 10240;

/// Default of [`BinLimits::joined_products`]. An H200 sorts this many products in 5 us, the cost of
/// a launch. A kernel that is not launched is not compiled either, which takes 60 to 100 ms if the
/// driver cache is empty.
const JOINED_PRODUCTS: u32 = 1 << 19;

/// The most nonzeros of A of a row that can be merged.
const MAX_MERGED_NONZEROS: u32 = MERGED_NONZEROS[MERGED_NONZEROS.len() - 1];

/// Default of [`BinLimits::few_rows`]: about a row per multiprocessor of an H200, so the other
/// kernel takes them all at once.
const FEW_ROWS: u32 = 128;

/// Numeric: rows of one nonzero of A with at most this many products are sorted, and longer ones are
/// copied.
const MAX_SORTED_COPY: u32 = 64;

/// The limits between bins. The defaults are tuned for an NVIDIA H200.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BinLimits {
    /// Both: rows of at most this many nonzeros of A are merged; up to 16. A product without limits of
    /// its own has 0 here, and merges no row, if A has fewer rows than threads can be resident on the
    /// device: a lane merges a row alone.
    pub merge_nonzeros: u32,
    /// Both: rows with more products than this are not merged.
    pub merge_products: u32,
    /// Both: rows are merged only if most of 32 neighbouring rows of A begin and end at most this
    /// many columns from the row before. Else each lane reads rows of B of its own, which the L1
    /// cache cannot hold. With 2^32 - 1, all rows are near.
    pub merge_distance: u32,
    /// Symbolic: rows of at most this many products are sorted in registers; up to 512.
    pub sort_products: u32,
    /// Numeric: rows of at most this many products are sorted in registers; up to 512.
    pub numeric_sort_products: u32,
    /// Both: a group of lanes sorts several rows, one after the other, if at least this many warps
    /// remain.
    pub min_sort_warps: u32,
    /// Both: rows are sorted together with those of the next size if that adds at most this many
    /// products to a launch.
    pub joined_products: u32,
    /// Both: a kernel with fewer rows than this is not launched. Another kernel takes its rows, one
    /// that is launched anyway or compiles in half the time.
    pub few_rows: u32,
    /// Symbolic: other rows of fewer than 8192 products have a bitmap per warp up to this span; up to
    /// 2048.
    pub narrow_span: u32,
    /// Symbolic: other rows of at most this many products have a hash table; up to 16384.
    pub hash_products: u32,
    /// Symbolic: a bitmap is chosen if it has at most this many words per product.
    pub bitmap_words: u32,
    /// Symbolic: rows whose rows of B are runs of columns are joined as intervals up to this span.
    pub run_span: u32,
    /// Symbolic: rows of runs with at most this many products are sorted instead, which gives their
    /// values at once.
    pub run_products: u32,
    /// Numeric: a row has a window of accumulators up to this span; up to 2048.
    pub window_span: u32,
    /// Numeric: windows, and sums in registers, need rows of B of at least this mean length.
    pub window_row_length: u32,
    /// Numeric: a warp takes four rows of runs together if at least this many warps remain.
    pub min_neighbour_warps: u32,
    /// Numeric: rows of at most this many entries are searched by a warp; up to 512.
    pub search_row_entries: u32,
    /// Numeric: a row with more products than this is not left to one warp, unless sums must be in
    /// order.
    pub search_row_products: u32,
    /// Numeric: the products of a row of several chunks are spread over the device if there are at
    /// most this many per nonzero of A and chunk.
    pub spread_products: u32,
    /// Numeric: entries of a chunk of a longer row, a power of two from 1024 to 8192.
    pub chunk_entries: u32,
    /// Numeric: maximum words of the bitmap of a chunk of `chunk_entries` entries. A smaller chunk
    /// has fewer words in proportion. A chunk that spans more columns is searched.
    pub rank_words: u32,
    /// Numeric: 1 if each sum must be added up in the order of the nonzeros of A, else 0.
    pub ordered: u32,
}

// SAFETY: `repr(C)` with u32 fields only, so it has no padding.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl cuda_std::kernel::KernelParam for BinLimits {}

impl BinLimits {
    /// The defaults for a device that gives a block `shared_bytes` of shared memory, for elements
    /// of `element_bytes`.
    pub const fn new(shared_bytes: u32, element_bytes: u32) -> Self {
        // A hash table needs two slots and one word of the column list per product.
        let mut hash_products = 16384;
        while 4 * (3 * hash_products + 4) > shared_bytes {
            hash_products /= 2;
        }
        let rest = staging_bytes(element_bytes);
        let mut chunk = 8192;
        while search_bytes(chunk, element_bytes) + rest > shared_bytes {
            chunk /= 2;
        }
        let rank_words = (shared_bytes - rest - chunk * element_bytes) / 6;
        Self {
            merge_nonzeros: MAX_MERGED_NONZEROS,
            merge_products: MAX_MERGED_NONZEROS * MAX_MERGED_NONZEROS,
            merge_distance: 4,
            sort_products: MAX_SORTED_PRODUCTS,
            numeric_sort_products: 256,
            min_sort_warps: 8192,
            joined_products: JOINED_PRODUCTS,
            few_rows: FEW_ROWS,
            narrow_span: narrow_rows::MAX_SPAN,
            hash_products,
            bitmap_words: 4,
            run_span: 4096,
            run_products: 32,
            window_span: 2048,
            window_row_length: 8,
            min_neighbour_warps: 1024,
            search_row_entries: MAX_SEARCHED_ENTRIES,
            search_row_products: 1024,
            spread_products: 4,
            chunk_entries: chunk,
            rank_words: if rank_words < RANK_WORDS {
                rank_words
            } else {
                RANK_WORDS
            },
            ordered: 0,
        }
    }

    /// These limits, reduced to what the kernels allow. `default` is exactly that.
    pub fn within(self, default: Self) -> Self {
        let chunk = self.chunk_entries.clamp(1024, default.chunk_entries);
        Self {
            merge_nonzeros: self.merge_nonzeros.min(MAX_MERGED_NONZEROS),
            sort_products: self.sort_products.min(MAX_SORTED_PRODUCTS),
            numeric_sort_products: self.numeric_sort_products.min(MAX_SORTED_PRODUCTS),
            narrow_span: self.narrow_span.min(default.narrow_span),
            hash_products: self.hash_products.min(default.hash_products),
            window_span: self.window_span.min(default.window_span),
            search_row_entries: self.search_row_entries.min(default.search_row_entries),
            // Rounded down to a power of two.
            chunk_entries: 1 << chunk.ilog2(),
            rank_words: self.rank_words.min(default.rank_words),
            ..self
        }
    }
}

/// How often `first` must be doubled to reach `size`.
#[inline(always)]
const fn doublings(size: u32, first: u32) -> u32 {
    if size <= first {
        0
    } else {
        (size - 1).ilog2() - (first - 1).ilog2()
    }
}

/// Words of the bitmap of each [`SPARSE_BITMAP`](symbolic::SPARSE_BITMAP) size from 0 on: 512, 768,
/// 1024, 1536, .. 16384. A smaller bitmap lets more rows share a multiprocessor; with powers of two
/// alone, the phase took 1.13 times as long on a stencil.
pub const fn sparse_bitmap_words(size: u32) -> u32 {
    if size.is_multiple_of(2) {
        512 << (size / 2)
    } else {
        768 << (size / 2)
    }
}

/// The smallest size with at least this many words.
#[inline(always)]
const fn sparse_bitmap_size(words: u32) -> u32 {
    let doublings = doublings(words, 512);
    if doublings > 0 && words <= 384 << doublings {
        2 * doublings - 1
    } else {
        2 * doublings
    }
}

impl BinLimits {
    /// Whether rows of B that are runs are joined as intervals in the symbolic phase.
    #[inline(always)]
    const fn joins_runs(&self, row: RowWork) -> bool {
        row.b_rows_are_runs && row.span <= self.run_span && row.products > self.run_products
    }

    /// Whether the row is merged, in both phases.
    #[inline(always)]
    const fn merges(&self, row: RowWork) -> bool {
        row.is_near
            && row.nonzeros <= self.merge_nonzeros
            && row.products <= self.merge_products
            && !self.joins_runs(row)
    }

    /// Whether a row's products are sorted in registers, where rows of at most `most` products are.
    #[inline(always)]
    const fn sorts(most: u32, row: RowWork) -> bool {
        row.products <= most && row.span <= MAX_SPAN
    }

    /// Maximum words of the bitmap of a chunk of at most `capacity` entries, a power of two. With
    /// the default, the bitmap then takes about as much shared memory as columns and index of a
    /// searched chunk do, however few entries the chunk has.
    #[inline(always)]
    pub const fn rank_words_of(&self, capacity: u32) -> u32 {
        // A capacity is at most that of a chunk, so the shift is below 32.
        let chunk = if self.chunk_entries > capacity {
            self.chunk_entries
        } else {
            capacity
        };
        self.rank_words >> (capacity.leading_zeros() - chunk.leading_zeros())
    }

    /// The symbolic bin of a row.
    #[inline(always)]
    pub fn symbolic_bin(&self, row: RowWork) -> u32 {
        use symbolic::{BITMAP, COPY, EMPTY, HASH, MERGE, NARROW, RUNS, SORT, SPARSE_BITMAP};
        let RowWork { products, span, .. } = row;
        if products == 0 {
            return EMPTY;
        }
        if row.nonzeros == 1 {
            return COPY;
        }
        if self.joins_runs(row) {
            return RUNS;
        }
        if self.merges(row) {
            return MERGE + doublings(row.nonzeros, MERGED_NONZEROS[0]);
        }
        if Self::sorts(self.sort_products, row) {
            return SORT + doublings(products, SORTED_PRODUCTS[0]);
        }
        if products < SPARSE_BITMAP_PRODUCTS && span <= self.narrow_span {
            return NARROW;
        }
        let bitmap = u64::from(self.bitmap_words) * u64::from(products) >= u64::from(span / 32);
        if products <= self.hash_products && !bitmap {
            return HASH + doublings(products, 256);
        }
        let words = crate::symbolic::bitmap_rows::words(span, u32::MAX);
        if products < SPARSE_BITMAP_PRODUCTS
            && words <= sparse_bitmap_words(BITMAP - SPARSE_BITMAP - 1)
        {
            return SPARSE_BITMAP + sparse_bitmap_size(words);
        }
        BITMAP + (u32::BITS - 1 - products.ilog2())
    }

    /// The numeric bin of a row with this many entries, and the number of its chunks or parts. A
    /// row of up to one chunk has 1.
    #[inline(always)]
    pub fn numeric_bin(&self, row: RowWork, entries: u32) -> (u32, u32) {
        use numeric::{COPY, EMPTY, INTERVALS, MERGE, NEIGHBOURS, ORDERED_CHUNKS};
        use numeric::{RANK_CHUNKS, SEARCH_CHUNKS, SEARCH_ROWS, SORT, SPREAD, WINDOW};
        let RowWork {
            products,
            span,
            nonzeros,
            ..
        } = row;
        if entries == 0 {
            return (EMPTY, 1);
        }
        if nonzeros == 1 {
            // A copy takes a warp, a sorted row some lanes.
            if products <= MAX_SORTED_COPY && Self::sorts(self.numeric_sort_products, row) {
                return (SORT + doublings(products, SORTED_PRODUCTS[0]), 1);
            }
            return (COPY, entries.div_ceil(crate::numeric::copy::CHUNK));
        }
        if self.merges(row) {
            return (MERGE + doublings(nonzeros, MERGED_NONZEROS[0]), 1);
        }
        let few = products <= self.search_row_products;
        let long_rows =
            u64::from(products) >= u64::from(self.window_row_length) * u64::from(nonzeros);
        if row.b_rows_are_runs
            && span <= crate::numeric::interval_rows::MAX_SPAN.min(self.window_span)
            && long_rows
            && (nonzeros <= crate::numeric::interval_rows::MAX_NONZEROS || self.ordered != 0)
        {
            let together = row.a_row_is_run && span <= crate::numeric::neighbour_rows::MAX_SPAN;
            return (if together { NEIGHBOURS } else { INTERVALS }, 1);
        }
        if span <= self.window_span && long_rows && (few || self.ordered != 0) {
            return (WINDOW + doublings(span, 128), 1);
        }
        if Self::sorts(self.numeric_sort_products, row) {
            return (SORT + doublings(products, SORTED_PRODUCTS[0]), 1);
        }
        if self.ordered != 0 {
            return (
                ORDERED_CHUNKS,
                entries.div_ceil(crate::numeric::ordered_chunks::CHUNK),
            );
        }
        if entries <= self.search_row_entries && few {
            return (SEARCH_ROWS + doublings(entries, SEARCHED_ENTRIES[0]), 1);
        }
        // At least 1 anyway; `max` spares the panic path of a division by zero.
        let chunks = entries.div_ceil(self.chunk_entries.max(1));
        let visits = u64::from(chunks) * u64::from(nonzeros);
        if chunks > 1
            && u64::from(products) <= u64::from(self.spread_products).saturating_mul(visits)
        {
            return (
                SPREAD,
                nonzeros.div_ceil(crate::numeric::spread_rows::PART_NONZEROS),
            );
        }
        let size = doublings(
            if chunks > 1 {
                self.chunk_entries
            } else {
                entries
            },
            1024,
        );
        if span.div_ceil(32) < self.rank_words_of(1024 << size) {
            (RANK_CHUNKS + size, chunks)
        } else {
            (SEARCH_CHUNKS + size, chunks)
        }
    }
}
