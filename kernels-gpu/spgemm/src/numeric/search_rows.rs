//! Numeric, for rows of some hundred entries: a warp finds the entry of each product by binary
//! search.
//!
//! The columns of the row are known and sorted, so the search takes `log2(entries)` steps in shared
//! memory. A hash table would have to be built first. Products are added by atomic operations in
//! shared memory; the order of additions depends on timing. A product costs its column and value of
//! B, the search, and one atomic addition.

use crate::products::bins::WORK_WORDS;
use crate::products::operands::{Factors, OperandPatterns, OutputPattern, RowList};
use crate::products::row_products::RowProducts;
use crate::products::search::SortedAccumulators;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 256;

/// Warps in a block, each with a row.
const WARPS: u32 = BLOCK / WARP_SIZE;

/// The launch for this many rows of at most `capacity` entries, a warp each.
pub fn launch<T: Real>(rows: u32, capacity: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(WARPS), BLOCK)
        .shared_bytes(WARPS * SortedAccumulators::<T>::bytes(capacity))
}

/// The values of each listed row. A warp takes a row; its lanes take the products as
/// [`row_products`](crate::products::row_products) deals them out.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The listed rows have at most `capacity` entries,
/// a power of two. `work` is that of [`row_work`](crate::analysis::work::row_work). `c` is the
/// pattern of their product (see [`OutputPattern`]), and `values` has room for its entries. The
/// launch is [`launch`]'s.
#[kernel(name = "spgemm_search_rows", T = [f32, f64])]
pub unsafe fn search_rows<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    capacity: u32,
    work: Global<u32>,
    c: OutputPattern,
    values: GlobalMut<T>,
) {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    let item = thread::block_idx_x() * WARPS + warp;
    if item >= items.count {
        return;
    }
    let lane = warp::lane_id();
    let accumulators = SortedAccumulators::<T>::in_shared_memory(warp, capacity);
    // SAFETY: `item` is below `items.count`, checked above. Each warp has its own part of shared
    // memory, and synchronises between its uses. Every product's column is one of the row's.
    unsafe {
        let [row, _] = items.load(item);
        let (start, end) = c.row(row);
        let range = [start, end - start];
        accumulators.load(&c, c.columns(row), range, [lane, WARP_SIZE]);
        warp::sync_warp(FULL_MASK);
        let row_products = RowProducts {
            operands: &operands,
            factors,
            nonzeros: operands.a.row(row),
            products: work.load(WORK_WORDS * row as usize),
            warp: 0,
            warps: 1,
            window: None,
            long_rows: None,
        };
        row_products.for_each::<true>(|column, product| {
            accumulators
                .sums
                .atomic_add(accumulators.position(column), product);
        });
        warp::sync_warp(FULL_MASK);
        accumulators.write(values.offset(start as usize), end - start, lane, WARP_SIZE);
    }
}
