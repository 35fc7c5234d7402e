//! The exercises, in the order of the course. Each is a folder of this package.

/// The names of the exercises' folders.
pub const EXERCISES: &[&str] = &[
    "01_hello",
    "02_grid_stride",
    "03_coalescing",
    "04_transpose",
    "05_block_sum",
    "06_warp_sum",
    "07_histogram",
    "08_total",
    "09_divergence",
    "10_spmv",
    "11_warp_per_row",
    "12_early_exit",
    "13_matmul_tiles",
    "14_last_block",
    "15_cancellation",
    "16_long_rows",
    "17_segmented_sum",
    "18_vector_loads",
    "19_scan",
    "20_compaction",
    "21_chain_of_blocks",
    "50_sub_warps",
    "51_balanced_tasks",
    "52_hash_table",
];
