//! Which kernel of the numeric phase takes a row: by its work, as the symbolic phase knew it, and its entries.

use super::bins::{BIN_BITS, BINS, Borders, Known, RowWork, numeric};
use super::operands::{Pattern, Structure};
use super::work::{WORK, add_counts};
use cuda_std::prelude::*;

/// The numeric bin of each row whose values are not known yet, a thread a row: the bin's word, with the row's chunks, and the
/// items of each bin.
///
/// # Safety
///
/// `work` and `row_words` are [`row_work`](super::work::row_work)'s, `c` the product's row pointers; `words` has a number for each of the rows;
/// `counts` holds [`BINS`] zeros.
#[kernel(name = "spgemm_entry_work")]
pub unsafe fn entry_work(
    a: Pattern,
    work: Global<u32>,
    row_words: Global<u32>,
    known: Known,
    c: Structure,
    borders: Borders,
    words: GlobalMut<u32>,
    counts: GlobalMut<u32>,
) {
    let shared_counts = shared_array!(u32; 64);
    let row = thread::index_1d();
    let t = thread::thread_idx_x() as usize;
    // SAFETY: rows below `rows`; shared counts are accessed by atomic operations alone between the barriers.
    unsafe {
        if t < BINS as usize {
            shared_counts.store(t, 0);
        }
        thread::sync_threads();
        if row < u64::from(a.rows) {
            let (start, end) = c.row(row as u32);
            let (a_start, a_end) = a.row(row as u32);
            let [products, _, span, runs] = work.load4(WORK * row as usize);
            let work = RowWork {
                products,
                span,
                nonzeros: a_end - a_start,
                runs: runs != 0,
            };
            let bin = row_words.load(row as usize) & ((1 << BIN_BITS) - 1);
            let (bin, chunks) = if known.has(bin) {
                (numeric::EMPTY, 1)
            } else {
                borders.numeric_bin(work, end - start)
            };
            words.store(row as usize, bin | chunks << BIN_BITS);
            shared_counts.atomic_add(bin as usize, chunks);
        }
        thread::sync_threads();
        add_counts(shared_counts, counts);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> &'static [&'static str] {
    entry_work().entry_points()
}
