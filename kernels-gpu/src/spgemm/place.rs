//! The lists of the rows of each bin, one bin's after the other's.

use super::bins::{BIN_BITS, BINS};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

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
    let row = thread::index_1d();
    let t = thread::thread_idx_x() as usize;
    // SAFETY: rows below `rows`; shared counts are accessed by atomic operations alone between the barriers.
    unsafe {
        if t < BINS as usize {
            shared_counts.store(t, 0);
        }
        thread::sync_threads();
        let (mut bin, mut chunks, mut rank) = (0, 0, 0);
        if row < u64::from(rows) {
            let word = words.load(row as usize);
            bin = (word & ((1 << BIN_BITS) - 1)) as usize;
            chunks = word >> BIN_BITS;
            rank = shared_counts.atomic_add(bin, chunks);
        }
        thread::sync_threads();
        if t < BINS as usize {
            let mut start = 0;
            for lower in 1..t {
                start += counts.load(lower);
            }
            let mine = shared_counts.load(t);
            if mine > 0 {
                start += cursors.atomic_add(Scope::Device, t, mine);
            }
            starts.store(t, start);
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

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> &'static [&'static str] {
    place().entry_points()
}
