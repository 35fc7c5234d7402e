//! The lists of the rows of each bin, one bin's list after the other's.
//!
//! ```text
//! bin of each row   2 1 2 0 1        counts 1 2 2 (bin 0 is not listed)
//! list              (1,0) (4,0) | (0,0) (2,0)       pairs of row and chunk
//! ```

use crate::products::bins::{BIN_BITS, BINS};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::primitives::scan::scan_in_block;

/// Writes the items of each bin to the bin's part of `list`: pairs of a row and a chunk. Rows of
/// bin 0 have no work and are left out.
///
/// A thread takes a row. Lanes with the same bin are counted by one atomic addition in shared
/// memory. The block then reserves its part of each bin by one atomic addition on the bin's cursor.
/// The order of rows within a bin depends on timing, and no result depends on it. A row costs 4
/// bytes, an item 8.
///
/// # Safety
///
/// `words` has each row's bin and number of chunks, and `counts` the items of each bin, as
/// [`row_work`](crate::analysis::work::row_work) or
/// [`numeric_bins`](crate::analysis::numeric_bins::numeric_bins) writes them. `cursors` holds
/// [`BINS`] zeros; `list` has room for a pair per item of all bins but bin 0.
#[kernel(name = "spgemm_fill_row_lists")]
pub unsafe fn fill_row_lists(
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
    // SAFETY: `row` is below `rows` where it is used. The cursors give each item its own pair.
    // Shared counts are accessed by atomic operations between barriers, and all threads reach each
    // barrier.
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
        // Neighbouring rows share few bins, and most rows are one item.
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
