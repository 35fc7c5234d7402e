//! The places of the products of chunks, by the ranks of their columns or by searches, as in [`chunks`](crate::numeric::chunks).

use crate::numeric::chunks::{Chunk, Ranks};
use crate::products::operands::{Items, Operands, Structure};
use crate::products::search;
use crate::reuse::places::{LANE_PRODUCTS, Places, TILE};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{self, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 512;

/// The launch of [`place_ranked`] for that many chunks with bitmaps of `words` words.
pub fn launch_ranked(chunks: u32, words: u32) -> LaunchConfig {
    LaunchConfig::new(chunks, BLOCK).shared_bytes(6 * words)
}

/// The launch of [`place_searched`] for that many chunks of up to `capacity` entries.
pub fn launch_searched(chunks: u32, capacity: u32) -> LaunchConfig {
    LaunchConfig::new(chunks, BLOCK).shared_bytes(4 * capacity)
}

/// Writes down the places of the products of chunks, by their ranks in a bitmap; a block a chunk.
///
/// # Safety
///
/// As for [`rank_chunks`](crate::numeric::chunks::rank_chunks); `places` has what there is to know of these chunks but `to`, the places.
/// The launch is [`launch_ranked`]'s.
#[kernel(name = "spgemm_place_ranked")]
pub unsafe fn place_ranked(
    operands: Operands,
    items: Items,
    chunk_entries: u32,
    c: Structure,
    places: Places,
    to: GlobalMut<u16>,
) {
    // SAFETY: a chunk and its products; the block synchronises before it reads the ranks.
    unsafe {
        let chunk = Chunk::load(&operands, items, chunk_entries, &c);
        let first = chunk.columns.load(0);
        let ranks = Ranks::clear(shared::dynamic_shared_mem::<u32>(), &chunk);
        thread::sync_threads();
        ranks.make(chunk.columns, chunk.count, first, |_, _| {});
        thread::sync_threads();
        write_places(&operands, &places, to, |column| ranks.of(column - first));
    }
}

/// The same by searches.
///
/// # Safety
///
/// As for [`place_ranked`], whatever columns the chunks span; `capacity` is a power of two, and they have no more entries. The
/// launch is [`launch_searched`]'s.
#[kernel(name = "spgemm_place_searched")]
pub unsafe fn place_searched(
    operands: Operands,
    items: Items,
    capacity: u32,
    chunk_entries: u32,
    c: Structure,
    places: Places,
    to: GlobalMut<u16>,
) {
    let columns = shared::dynamic_shared_mem::<u32>();
    // SAFETY: a chunk and its products; the block synchronises before it reads the columns.
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
            i += BLOCK;
        }
        thread::sync_threads();
        write_places(&operands, &places, to, |column| {
            search::place(columns, capacity, column)
        });
    }
}

/// Writes down the places of the products of the block's chunk: a warp a tile.
#[inline(always)]
unsafe fn write_places(
    operands: &Operands,
    places: &Places,
    to: GlobalMut<u16>,
    place: impl Fn(u32) -> usize,
) {
    let (t, lane) = (thread::thread_idx_x(), warp::lane_id());
    // SAFETY: products of the chunk.
    unsafe {
        let products = places.of_chunk(thread::block_idx_x());
        let mut tile = products.start + t / WARP_SIZE;
        while tile < products.end {
            let pieces = places.head_without_places(tile).pieces();
            let first = products.first(tile);
            let columns: [u32; LANE_PRODUCTS] = array::from_fn(|u| {
                let p = first + u as u32 * WARP_SIZE;
                if p >= products.count {
                    return u32::MAX;
                }
                let base = places.pieces.load(2 * pieces[u] as usize);
                operands.b.col_idx.load(base.wrapping_add(p) as usize)
            });
            let found: [u16; LANE_PRODUCTS] = array::from_fn(|u| match columns[u] {
                u32::MAX => 0,
                column => place(column) as u16,
            });
            to.store4((tile as usize) * TILE as usize + 4 * lane as usize, found);
            tile += BLOCK / WARP_SIZE;
        }
    }
}
