//! The destinations in a [chunk map](crate::reuse::chunk_map): the rank of each product's
//! column in its chunk, by a bitmap or by binary search as in [`chunks`](crate::numeric::chunks). A
//! product costs its column, its part of the map, and 2 bytes written.

use crate::numeric::chunks::{Chunk, ColumnRanks};
use crate::products::operands::{OperandPatterns, OutputPattern, RowList};
use crate::products::search;
use crate::reuse::chunk_map::{ChunkMap, LANE_PRODUCTS, MAX_THREADS, TILE, threads_of_map};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{self, WARP_SIZE};

/// The launch of [`rank_by_bitmap`] for this many chunks with bitmaps of `words` words.
pub fn launch_by_bitmap(chunks: u32, words: u32) -> LaunchConfig {
    LaunchConfig::new(chunks, MAX_THREADS).shared_bytes(6 * words)
}

/// The launch of [`rank_by_search`] for this many chunks of at most `capacity` entries.
pub fn launch_by_search(chunks: u32, capacity: u32) -> LaunchConfig {
    LaunchConfig::new(chunks, threads_of_map(capacity)).shared_bytes(4 * capacity)
}

/// Writes the rank of each product of the listed chunks, by a bitmap. A block takes a chunk, a warp
/// one tile, then another.
///
/// # Safety
///
/// As for [`rank_chunks`](crate::numeric::chunks::rank_chunks). `map` is complete but for the
/// ranks, which `to` has room for. The launch is [`launch_by_bitmap`]'s.
#[kernel(name = "spgemm_rank_by_bitmap")]
pub unsafe fn rank_by_bitmap(
    operands: OperandPatterns,
    items: RowList,
    chunk_entries: u32,
    c: OutputPattern,
    map: ChunkMap,
    to: GlobalMut<u16>,
) {
    // SAFETY: there is a block per item. The block synchronises between writes and reads of the
    // ranks.
    unsafe {
        let chunk = Chunk::load(&operands, items, chunk_entries, &c);
        let first = chunk.columns.load(0);
        let ranks = ColumnRanks::clear(shared::dynamic_shared_mem::<u32>(), &chunk);
        thread::sync_threads();
        ranks.fill(chunk.columns, chunk.count, first, |_, _| {});
        thread::sync_threads();
        write_ranks(&operands, &map, to, |column| ranks.of(column - first));
    }
}

/// Writes the rank of each product of the listed chunks, by binary search. A block takes a chunk,
/// as in [`rank_by_bitmap`].
///
/// # Safety
///
/// As for [`rank_by_bitmap`], for chunks of any span; `capacity` is a power of two, and no chunk
/// has more entries. The launch is [`launch_by_search`]'s.
#[kernel(name = "spgemm_rank_by_search")]
pub unsafe fn rank_by_search(
    operands: OperandPatterns,
    items: RowList,
    capacity: u32,
    chunk_entries: u32,
    c: OutputPattern,
    map: ChunkMap,
    to: GlobalMut<u16>,
) {
    let columns = shared::dynamic_shared_mem::<u32>();
    // SAFETY: there is a block per item. The block synchronises between writes and reads of the
    // columns.
    unsafe {
        let chunk = Chunk::load(&operands, items, chunk_entries, &c);
        let mut i = thread::thread_idx_x();
        while i < capacity {
            let column = if i < chunk.count {
                chunk.columns.load(i as usize)
            } else {
                u32::MAX
            };
            columns.store(i as usize, column);
            i += thread::block_dim_x();
        }
        thread::sync_threads();
        write_ranks(&operands, &map, to, |column| {
            search::position(columns, capacity, column)
        });
    }
}

/// Writes `rank_of(column)` for each product of the block's chunk. A warp takes a tile, then another.
///
/// # Safety
///
/// As for [`rank_by_bitmap`]; `rank_of` gives ranks within the chunk.
#[inline(always)]
unsafe fn write_ranks(
    operands: &OperandPatterns,
    map: &ChunkMap,
    to: GlobalMut<u16>,
    rank_of: impl Fn(u32) -> usize,
) {
    let (t, lane) = (thread::thread_idx_x(), warp::lane_id());
    // SAFETY: `tile` is below the end of the chunk's tiles, and `p` below its products where a
    // column is loaded.
    unsafe {
        let products = map.chunk(thread::block_idx_x());
        let mut tile = products.start + t / WARP_SIZE;
        while tile < products.end {
            let segments = map.tile_without_ranks(tile).segments();
            let first = products.first(tile);
            let columns: [u32; LANE_PRODUCTS] = array::from_fn(|u| {
                let p = first + u as u32 * WARP_SIZE;
                if p >= products.count {
                    return u32::MAX;
                }
                let base = map.segments.load(2 * segments[u] as usize);
                operands.b.col_idx.load(base.wrapping_add(p) as usize)
            });
            let found: [u16; LANE_PRODUCTS] = array::from_fn(|u| match columns[u] {
                u32::MAX => 0,
                column => rank_of(column) as u16,
            });
            to.store4((tile as usize) * TILE as usize + 4 * lane as usize, found);
            tile += thread::block_dim_x() / WARP_SIZE;
        }
    }
}
