//! Bins: which kernel takes a row. A bin is a kernel and a size of its table or registers.
//!
//! [`BinLimits`](crate::analysis::bin_limits::BinLimits) decides. It knows the row's products (p),
//! the span of its columns (s), its nonzeros of A, and after the symbolic phase its entries (e).
//! The first line that holds is taken.
//!
//! | symbolic bin | rows | kernel |
//! |---|---|---|
//! | `COPY` | one nonzero of A | none: the row of B |
//! | `RUNS` | rows of B are runs of columns, s <= 4096, p > 32 | `run_rows` |
//! | `MERGE` | at most 16 nonzeros of A, p <= 256, near rows of a large A | `merge_rows` |
//! | `SORT` | p <= 512, s < 2^23 | `sort_rows` |
//! | `NARROW` | p < 8192, s <= 2048 | `narrow_rows` |
//! | `HASH` | p <= 16384, s > 128 p | `hash_rows` |
//! | `SPARSE_BITMAP` | p < 8192, s <= 2^19 | `bitmap_rows`, words of neighbouring columns |
//! | `BITMAP` | the others | `bitmap_rows` |
//!
//! A is large if it has at least as many rows as threads can be resident on the device. The numeric
//! bins stand in [`numeric`].

/// Words that `row_work` writes for a row: products, first column, span of the columns, and a flag.
/// The flag is 1 if all rows of B are runs of neighbouring columns, 2 if the row of A is a run too,
/// else 0.
pub const WORK_WORDS: usize = 4;

/// Rows of at most this many products can be sorted in registers, in both phases; each size has an
/// instance of its own.
pub const SORTED_PRODUCTS: [u32; 6] = [16, 32, 64, 128, 256, 512];

/// The largest of these sizes.
pub const MAX_SORTED_PRODUCTS: u32 = SORTED_PRODUCTS[SORTED_PRODUCTS.len() - 1];

/// The number of bins of sorted rows in a phase.
pub const SORTED_BINS: u32 = SORTED_PRODUCTS.len() as u32;

/// Rows of at most this many nonzeros of A can be merged, in both phases; each size has an instance
/// of its own.
pub const MERGED_NONZEROS: [u32; 2] = [8, 16];

/// The number of bins of merged rows in a phase.
pub const MERGED_BINS: u32 = MERGED_NONZEROS.len() as u32;

/// Numeric: rows of at most this many entries can be searched by a warp.
pub const SEARCHED_ENTRIES: [u32; 4] = [64, 128, 256, 512];

/// The largest of these sizes.
pub const MAX_SEARCHED_ENTRIES: u32 = SEARCHED_ENTRIES[SEARCHED_ENTRIES.len() - 1];

/// Maximum number of bins of a phase: kernels count them in arrays of this length.
pub const BINS: u32 = 64;

/// Symbolic: a row with fewer products gets a bitmap fitted to its span, and a block of few warps, or
/// one warp.
pub const SPARSE_BITMAP_PRODUCTS: u32 = 8192;

/// Bits of the bin in a row's word; the bits above hold the number of its chunks.
pub const BIN_BITS: u32 = 8;

const _: () = assert!(symbolic::END <= BINS && numeric::END <= BINS);

/// Which rows have their values after the symbolic phase: none, or the short ones. The numeric
/// phase skips these rows.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolicValues(u32);

// SAFETY: `repr(transparent)` around a u32, so it has no padding.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl cuda_std::kernel::KernelParam for SymbolicValues {}

impl SymbolicValues {
    /// No row has values.
    pub const NONE: Self = Self(0);
    /// Sorted rows have values, and rows of one nonzero of A with at most [`MAX_SORTED_PRODUCTS`]
    /// entries.
    pub const SHORT_ROWS: Self = Self(1);

    /// Whether a row of this symbolic bin, with this many entries, has its values.
    #[inline(always)]
    pub const fn contains(self, bin: u32, entries: u32) -> bool {
        let is_sorted = symbolic::SORT <= bin && bin < symbolic::HASH;
        let is_copied = bin == symbolic::COPY && entries <= MAX_SORTED_PRODUCTS;
        self.0 == 1 && (is_sorted || is_copied)
    }
}

/// What is known of a row of C before its entries are counted.
#[derive(Clone, Copy)]
pub struct RowWork {
    /// Its products.
    pub products: u32,
    /// The number of columns from its first to its last, both included.
    pub span: u32,
    /// The nonzeros of its row of A.
    pub nonzeros: u32,
    /// Whether all its rows of B are runs of neighbouring columns.
    pub b_rows_are_runs: bool,
    /// Whether its row of A is a run too.
    pub a_row_is_run: bool,
    /// Whether its row of A and most of the rows around it have their first columns near each other,
    /// and their last ones too. Then they need the same rows of B, or neighbours.
    pub is_near: bool,
}

/// Bins of the symbolic phase. A constant is the first bin of a kernel; the kernel's larger sizes
/// follow it.
pub mod symbolic {
    /// No products; nothing is launched.
    pub const EMPTY: u32 = 0;
    /// One nonzero of A: the columns are those of the row of B.
    pub const COPY: u32 = 1;
    /// Rows of B are runs of neighbouring columns.
    pub const RUNS: u32 = 2;
    /// At most 8, 16 nonzeros of A, a row per lane. Their entries are only counted.
    pub const MERGE: u32 = 3;
    /// At most 16, 32, .. 512 products, sorted in registers, if they span few enough columns.
    pub const SORT: u32 = MERGE + super::MERGED_BINS;
    /// At most 256, 512, .. 16384 products, a hash table per block.
    pub const HASH: u32 = SORT + super::SORTED_BINS;
    /// Fewer than [`SPARSE_BITMAP_PRODUCTS`](super::SPARSE_BITMAP_PRODUCTS) products, few columns from
    /// the first to the last: a bitmap per warp.
    pub const NARROW: u32 = HASH + 7;
    /// Fewer than [`SPARSE_BITMAP_PRODUCTS`](super::SPARSE_BITMAP_PRODUCTS) products, a bitmap of
    /// at most [`sparse_bitmap_words`](crate::analysis::bin_limits::sparse_bitmap_words) words.
    pub const SPARSE_BITMAP: u32 = NARROW + 1;
    /// A bitmap of any size: fewer than 2^32 products, fewer than 2^31, .. The longest rows come
    /// first.
    pub const BITMAP: u32 = SPARSE_BITMAP + 11;
    /// One past the last bin.
    pub const END: u32 = BITMAP + 32;
}

/// Bins of the numeric phase. A constant is the first bin of a kernel; the kernel's larger sizes
/// follow it.
///
/// The first line that holds is taken. (p products, e entries, s the span of the columns.)
///
/// | bin | rows | kernel |
/// |---|---|---|
/// | `MERGE` | rows that the symbolic phase merges | `merge_products` |
/// | `SORT` | one nonzero of A, p <= 64, if they span few enough columns | `sort_products` |
/// | `COPY` | one nonzero of A | `copy_products` |
/// | `NEIGHBOURS` | rows of A and B are runs, s <= 64, at least 8 products per nonzero of A | `neighbour_rows` |
/// | `INTERVALS` | rows of B are runs, s <= 128, else as before | `interval_rows` |
/// | `WINDOW` | s <= 2048, p <= 1024, at least 8 products per nonzero of A | `window_rows` |
/// | `SORT` | p <= 256 | `sort_products` |
/// | `ORDERED_CHUNKS` | every other row of a deterministic product | `ordered_chunks` |
/// | `SEARCH_ROWS` | e <= 512, p <= 1024 | `search_rows` |
/// | `SPREAD` | several chunks, at most 4 products per nonzero of A and chunk | `spread_rows` |
/// | `RANK_CHUNKS` | s / 32 < 1.25 times the chunk's room for entries | `rank_chunks` |
/// | `SEARCH_CHUNKS` | the others | `search_chunks` |
pub mod numeric {
    /// No entries, or values that the symbolic phase has computed; nothing is launched.
    pub const EMPTY: u32 = 0;
    /// One nonzero of A: a multiple of the row of B.
    pub const COPY: u32 = 1;
    /// Windows of 128, 256, .. 2048 accumulators, one per warp.
    pub const WINDOW: u32 = 2;
    /// At most 16, 32, .. 512 products, sorted in registers, if they span few enough columns.
    pub const SORT: u32 = 7;
    /// At most 64, 128, 256, 512 entries; a warp finds each product's entry by binary search.
    pub const SEARCH_ROWS: u32 = SORT + super::SORTED_BINS;
    /// Chunks of at most 1024, 2048, 4096, 8192 entries; a bitmap gives the rank of a product's
    /// column.
    pub const RANK_CHUNKS: u32 = SEARCH_ROWS + super::SEARCHED_ENTRIES.len() as u32;
    /// Chunks of the same sizes; a binary search gives the rank.
    pub const SEARCH_CHUNKS: u32 = RANK_CHUNKS + 4;
    /// Parts of rows: the products of a row are spread over the device.
    pub const SPREAD: u32 = SEARCH_CHUNKS + 4;
    /// Chunks of a warp each; sums are added up in a fixed order.
    pub const ORDERED_CHUNKS: u32 = SPREAD + 1;
    /// At most 128 columns; rows of B are runs, added up in registers.
    pub const INTERVALS: u32 = ORDERED_CHUNKS + 1;
    /// At most 64 columns, where the row of A is a run too: several rows per warp.
    pub const NEIGHBOURS: u32 = INTERVALS + 1;
    /// At most 8, 16 nonzeros of A, a row per lane.
    pub const MERGE: u32 = NEIGHBOURS + 1;
    /// One past the last bin.
    pub const END: u32 = MERGE + super::MERGED_BINS;
}
