//! What each row costs, and the lists of the rows of each bin.
//!
//! Three steps for a phase: a kernel gives each row its bin and counts the bins ([`row_work`], [`entry_work`]), the host
//! fetches the counts, and [`place`] writes each bin's rows into its part of the list. Within a bin the rows' order is the
//! chance of the run, and no result depends on it.

use super::bins::{BIN_BITS, BINS, Borders, RowWork};
use super::operands::{Operands, Pattern, Structure};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads in a block of these kernels.
const BLOCK: u32 = 256;

/// Lanes that share a row of A.
const LANES: u32 = 8;

/// Numbers that [`row_work`] leaves for a row: products, the first column and the span of the columns, and 1 if its rows of
/// B are all runs of neighbouring columns.
pub const WORK: usize = 4;

/// The launch of the kernels that take a row a thread.
pub fn launch_rows(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK), BLOCK)
}

/// The launch of [`row_work`].
pub fn launch_row_work(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / LANES), BLOCK)
}

/// For each row of a matrix where it starts and ends, and its first and last column: what the walks want of B, in one
/// load. A thread a row; the columns of an empty row are 2^32 - 1 and 0.
///
/// # Safety
///
/// `b` is what it says, its columns ascending; `extents` has four numbers a row.
#[kernel(name = "spgemm_row_extents")]
pub unsafe fn row_extents(b: Pattern, extents: GlobalMut<u32>) {
    let row = thread::index_1d();
    if row >= u64::from(b.rows) {
        return;
    }
    // SAFETY: `row` is a row of B.
    unsafe {
        let (start, end) = b.row(row as u32);
        let (mut first, mut last) = (u32::MAX, 0);
        if start < end {
            first = b.col_idx.load(start as usize);
            last = b.col_idx.load(end as usize - 1);
        }
        extents.store4(4 * row as usize, [start, end, first, last]);
    }
}

/// Work and symbolic bin of each row of C, 8 lanes a row: `work`, the bin's word, an upper bound of the row's entries (its
/// products, or its span if that is less), the rows of each bin, and the sums of products and bounds.
///
/// # Safety
///
/// The operands are what they say, the columns of A rows of B. `work` has [`WORK`] numbers a row, `words` and `bounds` one
/// each, `entries` too; `counts` holds [`BINS`] zeros, `totals` two.
#[kernel(name = "spgemm_row_work")]
pub unsafe fn row_work(
    operands: Operands,
    borders: Borders,
    work: GlobalMut<u32>,
    words: GlobalMut<u32>,
    bounds: GlobalMut<u32>,
    entries: GlobalMut<u32>,
    counts: GlobalMut<u32>,
    totals: GlobalMut<u64>,
) {
    let shared_counts = shared_array!(u32; 64);
    let shared_totals = shared_array!(u64; 2);
    let row = thread::block_idx_x() * (BLOCK / LANES) + thread::thread_idx_x() / LANES;
    let t = thread::thread_idx_x() as usize;
    let lane = warp::lane_id() % LANES;
    let mask = super::walk::group_mask::<LANES>();
    // SAFETY: rows below `rows`; shared counts are accessed by atomic operations alone between the barriers.
    unsafe {
        if t < BINS as usize {
            shared_counts.store(t, 0);
        }
        if t < 2 {
            shared_totals.store(t, 0);
        }
        thread::sync_threads();
        if row < operands.a.rows {
            let (start, end) = operands.a.row(row);
            let (mut products, mut first, mut last, mut runs) = (0_u32, u32::MAX, 0_u32, 1_u32);
            let mut k = start + lane;
            while k < end {
                let column = operands.a.col_idx.load(k as usize) as usize;
                let [b_start, b_end, b_first, b_last] = operands.extents.load4(4 * column);
                products += b_end - b_start;
                first = first.min(b_first);
                last = last.max(b_last);
                if b_end > b_start && b_last - b_first != b_end - b_start - 1 {
                    runs = 0;
                }
                k = k.saturating_add(LANES);
            }
            let mut delta = LANES / 2;
            while delta > 0 {
                products += warp::shfl_xor(mask, products, delta, LANES);
                first = first.min(warp::shfl_xor(mask, first, delta, LANES));
                last = last.max(warp::shfl_xor(mask, last, delta, LANES));
                runs &= warp::shfl_xor(mask, runs, delta, LANES);
                delta /= 2;
            }
            if lane == 0 {
                let span = if products == 0 { 0 } else { last - first + 1 };
                let bound = products.min(span);
                let bin = borders.symbolic_bin(RowWork {
                    products,
                    span,
                    nonzeros: end - start,
                    runs: runs != 0,
                });
                let row = row as usize;
                work.store4(WORK * row, [products, first, span, runs]);
                words.store(row, bin | 1 << BIN_BITS);
                bounds.store(row, bound);
                entries.store(row, 0);
                shared_counts.atomic_add(bin as usize, 1);
                shared_totals.atomic_add(0, u64::from(products));
                shared_totals.atomic_add(1, u64::from(bound));
            }
        }
        thread::sync_threads();
        add_counts(shared_counts, counts);
        if t < 2 {
            totals.reduce_add(Scope::Device, t, shared_totals.load(t));
        }
    }
}

/// The numeric bin of each row, a thread a row: the bin's word, with the row's chunks, and the items of each bin.
///
/// # Safety
///
/// `work` is [`row_work`]'s, `c` the product's row pointers; `words` has a number for each of the rows; `counts` holds
/// [`BINS`] zeros.
#[kernel(name = "spgemm_entry_work")]
pub unsafe fn entry_work(
    a: Pattern,
    work: Global<u32>,
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
            let (bin, chunks) = borders.numeric_bin(work, end - start);
            words.store(row as usize, bin | chunks << BIN_BITS);
            shared_counts.atomic_add(bin as usize, chunks);
        }
        thread::sync_threads();
        add_counts(shared_counts, counts);
    }
}

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

/// Adds the block's counts to those of all.
#[inline(always)]
unsafe fn add_counts(shared_counts: Shared<u32>, counts: GlobalMut<u32>) {
    let t = thread::thread_idx_x() as usize;
    if t < BINS as usize {
        // SAFETY: both have a count for each bin; the caller has synchronised.
        unsafe {
            let count = shared_counts.load(t);
            if count > 0 {
                counts.reduce_add(Scope::Device, t, count);
            }
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> Vec<&'static str> {
    [
        row_extents().entry_points(),
        row_work().entry_points(),
        entry_work().entry_points(),
        place().entry_points(),
    ]
    .concat()
}

const _: () = assert!(BINS as usize == 64 && BLOCK >= BINS && WARP_SIZE.is_multiple_of(LANES));
