//! Numeric, long rows, once the places of their products are known: chunks of some thousand entries, a block each.
//!
//! As in [`chunks`](super::chunks) a block adds up the products of its chunk in shared memory; but where a product comes from
//! and where it goes is [written down](super::places), so that all warps go through the products by themselves, 128 at a
//! time. A product costs its value of B, two bytes of place, an eighth of a byte of what begins, and the addition.

use super::operands::{Items, Structure};
use super::places::{LANE_PRODUCTS, Places};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// The launch for that many chunks of up to `capacity` entries.
pub fn launch<T: Real>(chunks: u32, capacity: u32) -> LaunchConfig {
    #[cfg(target_arch = "nvptx64")]
    let block = 512;
    #[cfg(not(target_arch = "nvptx64"))]
    let block = std::env::var("PLACED_BLOCK").map_or(512, |b| b.parse().unwrap());
    LaunchConfig::new(chunks, block).shared_bytes(capacity * size_of::<T>() as u32)
}

/// The values of chunks of `chunk_entries` entries or, of a row that has no more, of as many as it has; a block a chunk.
///
/// # Safety
///
/// The items are chunks, `places` says where their products come from and go; `a` and `b` are the values of the operands, `c` the
/// product's structure, `values` its values. No chunk has more entries than the launch is for, which is [`launch`]'s.
#[kernel(name = "spgemm_placed_chunks", T = [f32, f64], AHEAD = [0, 1])]
pub unsafe fn placed_chunks<T: Real, const AHEAD: u32>(
    items: Items,
    places: Places,
    chunk_entries: u32,
    c: Structure,
    a: Global<T>,
    b: Global<T>,
    values: GlobalMut<T>,
) {
    let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let sums = shared::dynamic_shared_mem::<T>();
    // SAFETY: entries of C, products of the chunk; the block synchronises between writes and reads of the sums.
    unsafe {
        let [row, chunk] = items.load(thread::block_idx_x());
        let (row_start, row_end) = c.row(row);
        let start = row_start + chunk * chunk_entries;
        let count = (row_end - start).min(chunk_entries);
        // The room is for a multiple of four.
        let mut i = 4 * t;
        while i < count {
            sums.store4(i as usize, [T::ZERO; 4]);
            i += 4 * threads;
        }
        let products = places.of_chunk(thread::block_idx_x());
        thread::sync_threads();
        let warps = threads / WARP_SIZE;
        let mut tile = products.start + t / WARP_SIZE;
        if tile < products.end {
            let mut head = places.head(tile);
            loop {
                let next = tile + warps;
                let this = head;
                if AHEAD == 1 && next < products.end {
                    head = places.head(next);
                }
                let (pieces, first) = (this.pieces(), products.first(tile));
                let is_product = |u: usize| first + u as u32 * WARP_SIZE < products.count;
                let added: [T; LANE_PRODUCTS] = array::from_fn(|u| {
                    if !is_product(u) {
                        return T::ZERO;
                    }
                    let p = first + u as u32 * WARP_SIZE;
                    let [base, k] = places.pieces.load2(2 * pieces[u] as usize);
                    a.load(k as usize) * b.load(base.wrapping_add(p) as usize)
                });
                #[allow(
                    clippy::needless_range_loop,
                    reason = "iterators over the arrays are not unrolled, and put them into local memory"
                )]
                for u in 0..LANE_PRODUCTS {
                    if is_product(u) {
                        sums.atomic_add(usize::from(this.places[u]), added[u]);
                    }
                }
                if next >= products.end {
                    break;
                }
                tile = next;
                if AHEAD == 0 {
                    head = places.head(tile);
                }
            }
        }
        thread::sync_threads();
        let mut i = t;
        while i < count {
            values.store((start + i) as usize, sums.load(i as usize));
            i += threads;
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> &'static [&'static str] {
    placed_chunks::<f32, 0>().entry_points()
}
