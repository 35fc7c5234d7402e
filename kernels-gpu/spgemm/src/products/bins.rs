//! Bins, the numbers by which rows are sorted to kernels: a bin is a kernel with a size of its table.

/// Numbers that `row_work` leaves for a row: products, the first column and the span of the columns, and 1 if its rows of
/// B are all runs of neighbouring columns, 2 if its row of A is one besides.
pub const WORK: usize = 4;

/// Symbolic and numeric: rows of up to so many products are sorted in registers, each size by an instance of its own.
pub const SORTED_PRODUCTS: [u32; 6] = [16, 32, 64, 128, 256, 512];

/// The greatest of these sizes.
pub const MOST_PRODUCTS: u32 = SORTED_PRODUCTS[SORTED_PRODUCTS.len() - 1];

/// Bins of sorted rows in a phase.
pub const SORTED_BINS: u32 = SORTED_PRODUCTS.len() as u32;

/// Bins of a phase, at most: the rest of an entry's word counts chunks.
pub const BINS: u32 = 64;

/// Symbolic: rows of fewer products have bitmaps by their span, and blocks of few warps.
pub const NARROW_PRODUCTS: u32 = 8192;

/// Bits of the bin in a row's word; above them is the number of its chunks.
pub const BIN_BITS: u32 = 8;

const _: () = assert!(symbolic::END <= BINS && numeric::END <= BINS);

/// Which rows' values are known before the numeric phase: 0 for none, 1 for those that were sorted, and those of one nonzero of
/// A, if they are as short.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known(u32);

// SAFETY: a u32.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl cuda_std::kernel::KernelParam for Known {}

impl Known {
    /// No row's.
    pub const NONE: Self = Self(0);
    /// Those of sorted rows and of rows of one nonzero of A, if they are as short.
    pub const SORTED: Self = Self(1);

    /// Whether the values of a row of that symbolic bin and so many entries are.
    #[inline(always)]
    pub const fn has(self, bin: u32, entries: u32) -> bool {
        let is_sorted = symbolic::SORT <= bin && bin < symbolic::HASH;
        let is_copied = bin == symbolic::COPY && entries <= MOST_PRODUCTS;
        self.0 == 1 && (is_sorted || is_copied)
    }
}

/// What is known of a row before its entries are counted.
#[derive(Clone, Copy)]
pub struct RowWork {
    /// Its products.
    pub products: u32,
    /// The columns from its first to its last, both included.
    pub span: u32,
    /// The nonzeros of its row of A.
    pub nonzeros: u32,
    /// Whether all its rows of B are runs of neighbouring columns.
    pub runs: bool,
    /// Whether its row of A is one too.
    pub is_run: bool,
}

/// Bins of the symbolic phase. Where several sizes follow each other, the number is that of the first.
pub mod symbolic {
    /// No products; nothing is launched.
    pub const EMPTY: u32 = 0;
    /// One nonzero of A: the row of B.
    pub const COPY: u32 = 1;
    /// Runs of neighbouring columns.
    pub const RUNS: u32 = 2;
    /// Up to 16, 32, .. 512 products, sorted in registers where they span few enough columns.
    pub const SORT: u32 = 3;
    /// Up to 256, 512, .. 16384 products, a hash table a block.
    pub const HASH: u32 = SORT + super::SORTED_BINS;
    /// Fewer than [`NARROW_PRODUCTS`](super::NARROW_PRODUCTS) products, a bitmap of up to
    /// [`narrow_words`](crate::analysis::borders::narrow_words) words.
    pub const NARROW: u32 = HASH + 7;
    /// A bitmap of any size; fewer than 2^32 products, fewer than 2^31, ..: the longest rows first.
    pub const BITMAP: u32 = NARROW + 11;
    /// Past the last bin.
    pub const END: u32 = BITMAP + 32;
}

/// Bins of the numeric phase. Where several sizes follow each other, the number is that of the first.
pub mod numeric {
    /// No entries; nothing is launched.
    pub const EMPTY: u32 = 0;
    /// One nonzero of A: a multiple of the row of B.
    pub const COPY: u32 = 1;
    /// Windows of 128, 256, .. 2048 columns, one a warp.
    pub const WINDOW: u32 = 2;
    /// Up to 16, 32, .. 512 products, sorted in registers where they span few enough columns.
    pub const SORT: u32 = 7;
    /// Up to 64, 128, 256, 512 entries by a warp.
    pub const WARP: u32 = SORT + super::SORTED_BINS;
    /// Chunks of up to 1024, 2048, 4096, 8192 entries, found by their rank in a bitmap.
    pub const RANK: u32 = WARP + 4;
    /// The same, searched for.
    pub const SEARCH: u32 = RANK + 4;
    /// Parts of rows whose products are spread over the device.
    pub const SPREAD: u32 = SEARCH + 4;
    /// Chunks of a warp each, added up in order.
    pub const ORDERED: u32 = SPREAD + 1;
    /// Up to 128 columns of runs, added up in registers.
    pub const INTERVALS: u32 = ORDERED + 1;
    /// Up to 64 columns where the row of A is a run too, several rows together.
    pub const NEIGHBOURS: u32 = INTERVALS + 1;
    /// Past the last bin.
    pub const END: u32 = NEIGHBOURS + 1;
}
