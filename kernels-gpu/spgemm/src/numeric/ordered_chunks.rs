//! Numeric, deterministic: chunks of 512 entries, a warp each. Every sum is added up in the order
//! of the nonzeros of A.
//!
//! The warp takes the products of one nonzero of A after those of the one before. Their columns
//! differ, so no two lanes meet in an accumulator, and no atomics are needed. Binary search finds
//! the accumulator. A product costs its column and value of B and the search. Each nonzero of A
//! costs each chunk two more searches, which limit the row of B to the chunk's columns.

use crate::products::operands::{Factors, OperandPatterns, OutputPattern, RowList};
use crate::products::row_products::RowProducts;
use crate::products::search::SortedAccumulators;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Entries of a chunk.
pub const CHUNK: u32 = 512;

/// Warps in a block, each with a chunk.
const WARPS: u32 = 4;

/// The launch for this many chunks.
pub fn launch<T: Real>(chunks: u32) -> LaunchConfig {
    LaunchConfig::new(chunks.div_ceil(WARPS), WARPS * WARP_SIZE)
        .shared_bytes(WARPS * SortedAccumulators::<T>::bytes(CHUNK))
}

/// The values of each listed chunk of [`CHUNK`] entries. A warp takes a chunk.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The items are chunks of [`CHUNK`] entries. `c` is
/// the pattern of their product (see [`OutputPattern`]), and `values` has room for its entries. The
/// launch is [`launch`]'s.
#[kernel(name = "spgemm_ordered_chunks", T = [f32, f64])]
pub unsafe fn ordered_chunks<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    c: OutputPattern,
    values: GlobalMut<T>,
) {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    let item = thread::block_idx_x() * WARPS + warp;
    if item >= items.count {
        return;
    }
    let lane = warp::lane_id();
    let accumulators = SortedAccumulators::<T>::in_shared_memory(warp, CHUNK);
    // SAFETY: `item` is below `items.count`, checked above. Each warp has its own part of shared
    // memory, and synchronises between its uses. The window admits only columns of the chunk.
    unsafe {
        let [row, chunk] = items.load(item);
        let (row_start, row_end) = c.row(row);
        let start = row_start + chunk * CHUNK;
        let count = (row_end - start).min(CHUNK);
        let columns = c.columns(row).offset((chunk * CHUNK) as usize);
        accumulators.load(&c, columns, [start, count], [lane, WARP_SIZE]);
        warp::sync_warp(FULL_MASK);
        let window = if row_end - row_start <= CHUNK {
            None
        } else {
            Some((columns.load(0), columns.load(count as usize - 1)))
        };
        let row_products = RowProducts {
            operands: &operands,
            factors,
            nonzeros: operands.a.row(row),
            products: 0,
            warp: 0,
            warps: 1,
            window,
            long_rows: None,
        };
        row_products.for_each_in_order(|column, a, b| {
            let position = accumulators.position(column);
            accumulators
                .sums
                .store(position, a.mul_add(b, accumulators.sums.load(position)));
        });
        accumulators.write(values.offset(start as usize), count, lane, WARP_SIZE);
    }
}
