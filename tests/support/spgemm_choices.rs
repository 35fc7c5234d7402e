//! Options of SpGEMM that send rows to each of its kernels.

use warprow::spgemm::{BinLimits, SpgemmOptions, SpgemmTuning};

/// The default limits of a device for f32, changed. Every kernel takes its rows, however few or short they are.
pub fn bin_limits(change: impl Fn(&mut BinLimits)) -> SpgemmOptions {
    let mut bin_limits = BinLimits::new(227 << 10, 4);
    bin_limits.merge_nonzeros = 0;
    bin_limits.few_rows = 0;
    bin_limits.joined_products = 0;
    bin_limits.run_products = 0;
    change(&mut bin_limits);
    SpgemmOptions::new().tuning(SpgemmTuning::new().bin_limits(bin_limits))
}

/// Options that send rows to every kernel, whatever their length.
pub fn choices() -> Vec<SpgemmOptions> {
    vec![
        SpgemmOptions::default(),
        // Rows of runs together, however few there are.
        bin_limits(|b| b.min_neighbour_warps = 0).deterministic(true),
        // Bitmaps of a warp, and chunks in order alone.
        bin_limits(|b| {
            b.window_span = 0;
            b.sort_products = 0;
            b.numeric_sort_products = 0;
        })
        .deterministic(true),
        // No runs, no windows: hash tables and searches.
        bin_limits(|b| {
            b.run_span = 0;
            b.window_span = 0;
            b.narrow_span = 0;
            b.bitmap_words = 0;
            b.sort_products = 64;
            b.numeric_sort_products = 64;
        }),
        // Blocks' hash tables and bitmaps' ranks alone.
        bin_limits(|b| {
            b.run_span = 0;
            b.window_span = 0;
            b.sort_products = 0;
            b.numeric_sort_products = 0;
            b.narrow_span = 0;
            b.bitmap_words = 0;
            b.search_row_entries = 0;
            b.chunk_entries = 1024;
        }),
        // Rows of more than a chunk spread over blocks.
        bin_limits(|b| {
            b.spread_products = 1000;
            b.window_span = 0;
            b.search_row_products = 0;
            b.chunk_entries = 1024;
        }),
        // Bitmaps, and searches in chunks.
        bin_limits(|b| {
            b.spread_products = 0;
            b.run_span = 0;
            b.window_span = 0;
            b.sort_products = 0;
            b.numeric_sort_products = 0;
            b.narrow_span = 0;
            b.hash_products = 0;
            b.search_row_entries = 0;
            b.rank_words = 0;
            b.chunk_entries = 1024;
        }),
        // Rows sorted one after the other, in both phases, and the others' bitmaps.
        bin_limits(|b| {
            b.run_span = 0;
            b.window_span = 0;
            b.numeric_sort_products = 512;
            b.min_sort_warps = 1;
            b.narrow_span = 0;
            b.hash_products = 0;
        }),
        // Rows of few nonzeros of A merged, the others sorted.
        bin_limits(|b| {
            b.merge_nonzeros = 16;
            b.merge_products = u32::MAX;
            b.merge_distance = u32::MAX;
        }),
        // Windows for all rows that fit one, however short the rows of B.
        bin_limits(|b| {
            b.run_span = u32::MAX;
            b.window_row_length = 0;
            b.min_neighbour_warps = 0;
        }),
    ]
}
