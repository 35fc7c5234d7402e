//! Bins: which kernel takes a row, decided by the work that the row brings.
//!
//! A bin is a kernel with a size of its table; the lists of a bin's rows are made on the device. The symbolic phase knows
//! of a row its products and the span of its columns, the numeric phase its entries besides.

use crate::numeric::chunks::rest_bytes;
use crate::products::bins::{
    MOST_PRODUCTS, NARROW_PRODUCTS, RowWork, SORTED_PRODUCTS, numeric, symbolic,
};
use crate::symbolic::sort_rows::MOST_SPAN;

/// Numeric: words of a chunk's bitmap by default, of 327680 columns: two blocks fit a multiprocessor.
const RANK_WORDS: u32 = 10240;

/// By default: what an H200 sorts in five microseconds, the time of a launch beside others. And a kernel that is not launched need
/// not be compiled: that takes 60 to 100 ms in a process with an empty driver cache.
const JOINED_PRODUCTS: u32 = 1 << 19;

/// By default: about a row for each multiprocessor of an H200, so that the other kernel takes them all at once.
const FEW_ROWS: u32 = 128;

/// The borders between bins. Those of the default are tuned for an NVIDIA H200.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Borders {
    /// Symbolic: rows of that many products are sorted in registers; up to 512.
    pub sort_products: u32,
    /// Numeric: those of that many products are so once more; up to 512.
    pub sort_again: u32,
    /// A group of lanes sorts several rows, one after the other, where that leaves so many warps.
    pub sort_warps: u32,
    /// Rows are sorted with those of the next size if that adds no more than so many products to a launch.
    pub joined_products: u32,
    /// Fewer rows of a kernel than that go to another one, which is launched anyway or compiled in half the time.
    pub few_rows: u32,
    /// Symbolic: rows of that many products have a hash table; up to 16384.
    pub hash_products: u32,
    /// Symbolic: a bitmap is taken if it has that many words or fewer for a product.
    pub bitmap_words: u32,
    /// Symbolic: rows of B that are runs of neighbouring columns are joined where the span of the row has up to that many
    /// columns.
    pub run_span: u32,
    /// Symbolic: and the row more products than that; others are sorted, with their values at once.
    pub run_products: u32,
    /// Numeric: a window of accumulators is taken up to that many columns; up to 2048.
    pub window_span: u32,
    /// Numeric: and if the rows of B have at least that many nonzeros on average.
    pub window_row: u32,
    /// Numeric: a warp takes several neighbouring rows of runs together where that leaves so many warps.
    pub neighbour_warps: u32,
    /// Numeric: rows of that many entries are a warp's; up to 512.
    pub warp_entries: u32,
    /// Numeric: if they have no more products, unless sums must be added up in their order.
    pub warp_work: u32,
    /// Numeric: the products of a row of several chunks are spread over the device if they are up to that many for a nonzero
    /// of A in each chunk.
    pub spread: u32,
    /// Numeric: entries of a chunk of a longer row, a power of two from 1024 to 8192.
    pub chunk: u32,
    /// Numeric: words of a chunk's bitmap, at most; entries are searched for in wider ones.
    pub rank_words: u32,
    /// Numeric: 1 if sums must be added up in their order.
    pub ordered: u32,
}

// SAFETY: `repr(C)`, of u32 alone.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl cuda_std::kernel::KernelParam for Borders {}

impl Borders {
    /// The default, for a device whose kernels may have that many bytes of shared memory and elements of that size.
    pub const fn new(shared_bytes: u32, element_bytes: u32) -> Self {
        // A hash table has two slots for a product, and a place in the list.
        let mut hash_products = 16384;
        while 4 * (3 * hash_products + 4) > shared_bytes {
            hash_products /= 2;
        }
        let rest = rest_bytes(element_bytes);
        let mut chunk = 8192;
        // Searched chunks have columns and sums.
        while chunk * (element_bytes + 4) + rest > shared_bytes {
            chunk /= 2;
        }
        let rank_words = (shared_bytes - rest - chunk * element_bytes) / 6;
        Self {
            sort_products: MOST_PRODUCTS,
            sort_again: 256,
            sort_warps: 8192,
            joined_products: JOINED_PRODUCTS,
            few_rows: FEW_ROWS,
            hash_products,
            bitmap_words: 4,
            run_span: 4096,
            run_products: 32,
            window_span: 2048,
            window_row: 8,
            neighbour_warps: 1024,
            warp_entries: 512,
            warp_work: 1024,
            spread: 4,
            chunk,
            rank_words: if rank_words < RANK_WORDS {
                rank_words
            } else {
                RANK_WORDS
            },
            ordered: 0,
        }
    }

    /// These borders within what the kernels allow, which the default has.
    pub fn within(self, default: Self) -> Self {
        let chunk = self.chunk.clamp(1024, default.chunk);
        Self {
            sort_products: self.sort_products.min(MOST_PRODUCTS),
            sort_again: self.sort_again.min(MOST_PRODUCTS),
            hash_products: self.hash_products.min(default.hash_products),
            window_span: self.window_span.min(default.window_span),
            warp_entries: self.warp_entries.min(default.warp_entries),
            // The next lower power of two.
            chunk: 1 << chunk.ilog2(),
            rank_words: self.rank_words.min(default.rank_words),
            ..self
        }
    }
}

/// The number of the least of `first`, `2 first`, `4 first`, .. that is `size` or more, counted from 0.
#[inline(always)]
const fn doublings(size: u32, first: u32) -> u32 {
    if size <= first {
        0
    } else {
        (size - 1).ilog2() - (first - 1).ilog2()
    }
}

/// Words of the bitmaps of narrow rows, by their size from 0 on: 512, 768, 1024, 1536, .. 16384. The fewer they are, the more
/// rows a multiprocessor has at a time.
pub const fn narrow_words(size: u32) -> u32 {
    if size.is_multiple_of(2) {
        512 << (size / 2)
    } else {
        768 << (size / 2)
    }
}

/// The least size of so many words.
#[inline(always)]
const fn narrow_size(words: u32) -> u32 {
    let doublings = doublings(words, 512);
    if doublings > 0 && words <= 384 << doublings {
        2 * doublings - 1
    } else {
        2 * doublings
    }
}

impl Borders {
    /// Whether a row's products are sorted in registers, if up to `most` are.
    #[inline(always)]
    const fn sorts(most: u32, row: RowWork) -> bool {
        row.products <= most && row.span <= MOST_SPAN
    }

    /// The bin of a row in the symbolic phase.
    #[inline(always)]
    pub fn symbolic_bin(&self, row: RowWork) -> u32 {
        use symbolic::{BITMAP, COPY, EMPTY, HASH, NARROW, RUNS, SORT};
        let RowWork { products, span, .. } = row;
        if products == 0 {
            return EMPTY;
        }
        if row.nonzeros == 1 {
            return COPY;
        }
        if row.runs && span <= self.run_span && products > self.run_products {
            return RUNS;
        }
        if Self::sorts(self.sort_products, row) {
            return SORT + doublings(products, SORTED_PRODUCTS[0]);
        }
        let bitmap = u64::from(self.bitmap_words) * u64::from(products) >= u64::from(span / 32);
        if products <= self.hash_products && !bitmap {
            return HASH + doublings(products, 256);
        }
        let words = crate::symbolic::bitmap_rows::words(span, u32::MAX);
        if products < NARROW_PRODUCTS && words <= narrow_words(BITMAP - NARROW - 1) {
            return NARROW + narrow_size(words);
        }
        BITMAP + (u32::BITS - 1 - products.ilog2())
    }

    /// The bin of a row of `entries` in the numeric phase, and its chunks.
    #[inline(always)]
    pub fn numeric_bin(&self, row: RowWork, entries: u32) -> (u32, u32) {
        use numeric::{COPY, EMPTY, INTERVALS, NEIGHBOURS, ORDERED};
        use numeric::{RANK, SEARCH, SORT, SPREAD, WARP, WINDOW};
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
            return (COPY, entries.div_ceil(crate::numeric::copy::CHUNK));
        }
        let few = products <= self.warp_work;
        let long_rows = u64::from(products) >= u64::from(self.window_row) * u64::from(nonzeros);
        if row.runs
            && span <= crate::numeric::interval_rows::MOST_SPAN.min(self.window_span)
            && long_rows
            && (nonzeros <= crate::numeric::interval_rows::MOST_NONZEROS || self.ordered != 0)
        {
            let together = row.is_run && span <= crate::numeric::neighbour_rows::MOST_SPAN;
            return (if together { NEIGHBOURS } else { INTERVALS }, 1);
        }
        if span <= self.window_span && long_rows && (few || self.ordered != 0) {
            return (WINDOW + doublings(span, 128), 1);
        }
        if Self::sorts(self.sort_again, row) {
            return (SORT + doublings(products, SORTED_PRODUCTS[0]), 1);
        }
        if self.ordered != 0 {
            return (ORDERED, entries.div_ceil(crate::numeric::ordered::CHUNK));
        }
        if entries <= self.warp_entries && few {
            return (WARP + doublings(entries, 64), 1);
        }
        // It is not 0, which the compiler does not know.
        let chunks = entries.div_ceil(self.chunk.max(1));
        let visits = u64::from(chunks) * u64::from(nonzeros);
        if chunks > 1 && u64::from(products) <= u64::from(self.spread).saturating_mul(visits) {
            return (SPREAD, nonzeros.div_ceil(crate::numeric::spread_rows::PART));
        }
        let size = doublings(if chunks > 1 { self.chunk } else { entries }, 1024);
        if span.div_ceil(32) < self.rank_words {
            (RANK + size, chunks)
        } else {
            (SEARCH + size, chunks)
        }
    }
}
