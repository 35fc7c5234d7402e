//! The sources in a [chunk map](crate::reuse::chunk_map): the segments of each chunk.
//! [`count_segments`] counts them, a scan gives each chunk its place, and [`write_segments`] writes
//! them.

use crate::numeric::chunks::Chunk;
use crate::products::balanced_products::segment_of;
use crate::products::operands::{OperandPatterns, OutputPattern, RowList};
use crate::reuse::chunk_map::{ChunkMap, MAX_THREADS, TILE, threads_of_map};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{self, FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::primitives::scan::scan_in_block;

/// The launch of [`count_segments`] and [`write_segments`] for this many chunks of at most
/// `capacity` entries.
pub fn launch(chunks: u32, capacity: u32) -> LaunchConfig {
    LaunchConfig::new(chunks, threads_of_map(capacity))
}

/// The numbers of products, tiles and segments of each listed chunk. A block takes a chunk, a
/// thread one nonzero of A, then another. A nonzero costs the extents of a row of B and two binary
/// searches in it.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The items are chunks of `chunk_entries` entries,
/// and `c` is the pattern of their product (see [`OutputPattern`]). `products`, `tiles` and
/// `segments` have room for a number per chunk. The launch is [`launch`]'s.
#[kernel(name = "spgemm_count_segments")]
pub unsafe fn count_segments(
    operands: OperandPatterns,
    items: RowList,
    chunk_entries: u32,
    c: OutputPattern,
    products: GlobalMut<u32>,
    tiles: GlobalMut<u32>,
    segments: GlobalMut<u32>,
) {
    let sums = shared_array!(u32; 2);
    let t = thread::thread_idx_x();
    // SAFETY: there is a block per item, and `k` is below `end`. What is shared is written by one
    // thread or by atomic operations between barriers.
    unsafe {
        if t < 2 {
            sums.store(t as usize, 0);
        }
        thread::sync_threads();
        let chunk = Chunk::load(&operands, items, chunk_entries, &c);
        let (mut k, end) = chunk.nonzeros;
        k += t;
        let (mut count, mut all) = (0, 0);
        while k < end {
            let (_, len) = segment_of(&operands, chunk.window, k);
            count += u32::from(len > 0);
            all += len;
            k += thread::block_dim_x();
        }
        let (count, all) = (
            warp::reduce_add(FULL_MASK, count),
            warp::reduce_add(FULL_MASK, all),
        );
        if warp::lane_id() == 0 {
            sums.atomic_add(0, count);
            sums.atomic_add(1, all);
        }
        thread::sync_threads();
        if t == 0 {
            let block = thread::block_idx_x() as usize;
            let all = sums.load(1);
            products.store(block, all);
            tiles.store(block, all.div_ceil(TILE));
            segments.store(block, sums.load(0));
        }
    }
}

/// Writes the segments of each listed chunk, a bit for each product that begins one, and the last
/// segment before each tile. A block takes a chunk.
///
/// # Safety
///
/// As for [`count_segments`]. `map` has its counts, with the tiles scanned; `first_segments` has
/// the first segment of each chunk, by a scan. `segment_starts` is zero, and the arrays have room
/// for the tiles and segments counted.
#[kernel(name = "spgemm_write_segments")]
pub unsafe fn write_segments(
    operands: OperandPatterns,
    items: RowList,
    chunk_entries: u32,
    c: OutputPattern,
    map: ChunkMap,
    first_segments: Global<u32>,
    segment_starts: GlobalMut<u32>,
    segments_before: GlobalMut<u32>,
    segments: GlobalMut<u32>,
) {
    let warp_sums = shared_array!(u64; 16);
    let t = thread::thread_idx_x();
    // SAFETY: there is a block per item, and `k` is below `end` where it is used. Segments and
    // tiles stay below those counted. The block synchronises between writes and reads of what is
    // shared; all threads agree on `first` and `end`.
    unsafe {
        let item = thread::block_idx_x();
        let chunk = Chunk::load(&operands, items, chunk_entries, &c);
        let products = map.chunk(item);
        let first_segment = first_segments.load(item as usize);
        if t == 0 {
            segments_before.store(products.start as usize, first_segment.wrapping_sub(1));
        }
        let (mut first, end) = chunk.nonzeros;
        // Of the nonzeros before: the segments in the upper half, the products in the lower.
        let mut done = u64::from(first_segment) << 32;
        while first < end {
            let k = first + t;
            let (mut start, mut len) = (0, 0);
            if k < end {
                (start, len) = segment_of(&operands, chunk.window, k);
            }
            let mine = u64::from(len > 0) << 32 | u64::from(len);
            let (up_to, all) = scan_in_block(mine, warp_sums, |a, b| a + b, 0);
            if len > 0 {
                let sum = done + up_to;
                let (segment, p) = ((sum >> 32) as u32, sum as u32);
                segments.store2(2 * segment as usize, [start.wrapping_sub(p), k]);
                let word = products.start as usize * 4 + (p / WARP_SIZE) as usize;
                segment_starts.reduce_add(Scope::Device, word, 1 << (p % WARP_SIZE));
                // The tiles that begin after the segment's first product, and not after the first
                // product of the next segment.
                let mut tile = p / TILE + 1;
                while tile <= (p + len) / TILE && products.start + tile < products.end {
                    segments_before.store((products.start + tile) as usize, segment);
                    tile += 1;
                }
            }
            done += all;
            first += thread::block_dim_x();
            thread::sync_threads();
        }
    }
}

const _: () = assert!(MAX_THREADS == 16 * WARP_SIZE);
