//! Numeric, for searched rows and chunks of long rows whose [chunk map](crate::reuse::chunk_map)
//! exists: a block each.
//!
//! As in [`chunks`](crate::numeric::chunks), a block adds up the products of its chunk in shared
//! memory. But the map says where a product comes from and where it goes. The warps take tiles of
//! 128 products on their own, without barriers. A product costs its value of B, 2 bytes of rank,
//! one bit, and an atomic addition in shared memory.

use crate::products::operands::{OutputPattern, RowList};
use crate::reuse::chunk_map::{ChunkMap, LANE_PRODUCTS};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// The launch for this many chunks of at most `capacity` entries. A small chunk has few tiles, and
/// gets a small block.
pub fn launch<T: Real>(chunks: u32, capacity: u32) -> LaunchConfig {
    let block = (capacity / 8).clamp(128.min(capacity / 2), 512);
    LaunchConfig::new(chunks, block).shared_bytes(capacity * size_of::<T>() as u32)
}

/// The values of each listed chunk. A block takes a chunk of `chunk_entries` entries, or a whole
/// row that has fewer.
///
/// # Safety
///
/// `map` is the map of the listed chunks. `a` and `b` are the values of the operands; `c`
/// is the pattern of their product (see [`OutputPattern`]), and `values` has room for its entries.
/// No chunk has more entries than the launch is for, which is [`launch`]'s.
#[kernel(name = "spgemm_mapped_chunks", T = [f32, f64])]
pub unsafe fn mapped_chunks<T: Real>(
    items: RowList,
    map: ChunkMap,
    chunk_entries: u32,
    c: OutputPattern,
    a: Global<T>,
    b: Global<T>,
    values: GlobalMut<T>,
) {
    let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let sums = shared::dynamic_shared_mem::<T>();
    // SAFETY: there is a block per item. `tile` is below the end of the chunk's tiles, and
    // `is_product` is checked before each use of a product. The block synchronises between writes
    // and reads of the sums.
    unsafe {
        let [row, chunk] = items.load(thread::block_idx_x());
        let (row_start, row_end) = c.row(row);
        let start = row_start + chunk * chunk_entries;
        let count = (row_end - start).min(chunk_entries);
        // The room is a multiple of four sums, so whole vectors fit.
        let mut i = 4 * t;
        while i < count {
            sums.store4(i as usize, [T::ZERO; 4]);
            i += 4 * threads;
        }
        let products = map.chunk(thread::block_idx_x());
        thread::sync_threads();
        let mut tile = products.start + t / WARP_SIZE;
        while tile < products.end {
            let tile_map = map.tile(tile);
            let (segments, first) = (tile_map.segments(), products.first(tile));
            let is_product = |u: usize| first + u as u32 * WARP_SIZE < products.count;
            let added: [T; LANE_PRODUCTS] = array::from_fn(|u| {
                if !is_product(u) {
                    return T::ZERO;
                }
                let p = first + u as u32 * WARP_SIZE;
                let [base, k] = map.segments.load2(2 * segments[u] as usize);
                a.load(k as usize) * b.load(base.wrapping_add(p) as usize)
            });
            #[allow(
                clippy::needless_range_loop,
                reason = "iterators over the arrays are not unrolled, and put them into local memory"
            )]
            for u in 0..LANE_PRODUCTS {
                if is_product(u) {
                    sums.atomic_add(usize::from(tile_map.ranks[u]), added[u]);
                }
            }
            tile += threads / WARP_SIZE;
        }
        thread::sync_threads();
        let mut i = t;
        while i < count {
            values.store((start + i) as usize, sums.load(i as usize));
            i += threads;
        }
    }
}
