//! The pieces of chunks: of each nonzero of A, the part of its row of B whose columns lie in the chunk.

use crate::numeric::chunks::Chunk;
use crate::products::even_walk::cut;
use crate::products::operands::{Items, Operands, Structure};
use crate::reuse::places::{Places, TILE};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{self, FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::primitives::scan::scan_in_block;

/// Threads in a block.
const BLOCK: u32 = 512;

/// The launch of [`count_pieces`] and [`cut_pieces`] for that many chunks.
pub fn launch(chunks: u32) -> LaunchConfig {
    LaunchConfig::new(chunks, BLOCK)
}

/// The products of each chunk, its tiles and its pieces; a block a chunk.
///
/// # Safety
///
/// The operands are what they say; the items are chunks of `chunk_entries` entries, `c` is the product's structure. There is
/// room for a number for each chunk. The launch is [`launch`]'s.
#[kernel(name = "spgemm_count_pieces")]
pub unsafe fn count_pieces(
    operands: Operands,
    items: Items,
    chunk_entries: u32,
    c: Structure,
    products: GlobalMut<u32>,
    tiles: GlobalMut<u32>,
    pieces: GlobalMut<u32>,
) {
    let sums = shared_array!(u32; 2);
    let t = thread::thread_idx_x();
    // SAFETY: nonzeros of the row; what is shared is written by one thread or by atomic operations between barriers.
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
            let (_, len) = cut(&operands, chunk.window, k);
            count += u32::from(len > 0);
            all += len;
            k += BLOCK;
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
            pieces.store(block, sums.load(0));
        }
    }
}

/// Writes down the pieces of each chunk, where they begin, and what is before each tile; a block a chunk.
///
/// # Safety
///
/// As for [`count_pieces`], whose results are in `places` and, as the first piece of each chunk, in `piece_starts`; `begins` is
/// zero.
#[kernel(name = "spgemm_cut_pieces")]
pub unsafe fn cut_pieces(
    operands: Operands,
    items: Items,
    chunk_entries: u32,
    c: Structure,
    places: Places,
    piece_starts: Global<u32>,
    begins: GlobalMut<u32>,
    before: GlobalMut<u32>,
    pieces: GlobalMut<u32>,
) {
    let warp_sums = shared_array!(u64; 16);
    let t = thread::thread_idx_x();
    // SAFETY: nonzeros of the row, tiles and pieces of the chunk; the block synchronises between writes and reads of what is
    // shared.
    unsafe {
        let item = thread::block_idx_x();
        let chunk = Chunk::load(&operands, items, chunk_entries, &c);
        let products = places.of_chunk(item);
        let piece_start = piece_starts.load(item as usize);
        if t == 0 {
            before.store(products.start as usize, piece_start.wrapping_sub(1));
        }
        let (mut first, end) = chunk.nonzeros;
        // Pieces, and in the lower half products, of the nonzeros before.
        let mut done = u64::from(piece_start) << 32;
        while first < end {
            let k = first + t;
            let (mut start, mut len) = (0, 0);
            if k < end {
                (start, len) = cut(&operands, chunk.window, k);
            }
            let mine = u64::from(len > 0) << 32 | u64::from(len);
            let (up_to, all) = scan_in_block(mine, warp_sums, |a, b| a + b, 0);
            if len > 0 {
                let sum = done + up_to;
                let (piece, p) = ((sum >> 32) as u32, sum as u32);
                pieces.store2(2 * piece as usize, [start.wrapping_sub(p), k]);
                let word = products.start as usize * 4 + (p / WARP_SIZE) as usize;
                begins.reduce_add(Scope::Device, word, 1 << (p % WARP_SIZE));
                // The tiles that begin behind its first product and not behind the first of the next piece.
                let mut tile = p / TILE + 1;
                while tile <= (p + len) / TILE && products.start + tile < products.end {
                    before.store((products.start + tile) as usize, piece);
                    tile += 1;
                }
            }
            done += all;
            first += BLOCK;
            thread::sync_threads();
        }
    }
}

const _: () = assert!(BLOCK == 16 * WARP_SIZE);
