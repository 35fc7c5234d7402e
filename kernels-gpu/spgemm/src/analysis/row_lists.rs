//! The lists of the rows of each bin, one bin's after the other's.

use crate::products::bins::{BIN_BITS, BINS};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::primitives::scan::scan_in_block;

/// Writes the rows of each bin into the bin's part of `list`, with the number of the chunk, a thread a row. Rows of the first
/// bin, which has no work, are left out.
///
/// # Safety
///
/// `words` and `counts` are those of the kernel before; `cursors` holds [`BINS`] zeros; `list` has a pair for each item
/// of the bins but the first.
#[kernel(name = "spgemm_place")]
pub unsafe fn place(
    rows: u32,
    words: Global<u32>,
    counts: Global<u32>,
    cursors: GlobalMut<u32>,
    list: GlobalMut<u32>,
) {
    let shared_counts = shared_array!(u32; 64);
    let starts = shared_array!(u32; 64);
    let warp_sums = shared_array!(u32; 8);
    let row = thread::index_1d();
    let (t, lane) = (thread::thread_idx_x() as usize, warp::lane_id());
    // SAFETY: rows below `rows`; shared counts are accessed by atomic operations alone between the barriers; all lanes of a
    // warp are here.
    unsafe {
        if t < BINS as usize {
            shared_counts.store(t, 0);
        }
        let is_bin = 0 < t && t < BINS as usize;
        let count = if is_bin { counts.load(t) } else { 0 };
        let (start, _) = scan_in_block(count, warp_sums, u32::wrapping_add, 0);
        let word = if row < u64::from(rows) {
            words.load(row as usize)
        } else {
            0
        };
        let (bin, chunks) = ((word & ((1 << BIN_BITS) - 1)) as usize, word >> BIN_BITS);
        // Neighbours have few bins, and most rows are one item.
        let peers = warp::match_any(FULL_MASK, word);
        let leader = peers.trailing_zeros();
        let mut rank = 0;
        if lane == leader {
            rank = shared_counts.atomic_add(bin, peers.count_ones() * chunks);
        }
        rank = warp::shfl_idx(FULL_MASK, rank, leader, WARP_SIZE);
        rank += (peers & ((1 << lane) - 1)).count_ones() * chunks;
        thread::sync_threads();
        if t < BINS as usize {
            let mine = shared_counts.load(t);
            let before = if mine > 0 {
                cursors.atomic_add(Scope::Device, t, mine)
            } else {
                0
            };
            starts.store(t, start + before);
        }
        thread::sync_threads();
        if bin != 0 {
            let first = (starts.load(bin) + rank) as usize;
            for chunk in 0..chunks {
                list.store2(2 * (first + chunk as usize), [row as u32, chunk]);
            }
        }
    }
}
