//! From row pointers to the row of each nonzero, and the rows of a matrix in another order.
//!
//! A thread has a nonzero, whatever the lengths of the rows, and finds its row by a binary search of the row pointers. Two
//! threads of each block search all of them, for the block's first nonzero and for its last; the others only what lies
//! between, which is in the multiprocessor's cache.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch of these kernels for that many nonzeros, or rows: a thread each.
pub fn launch(count: u32) -> LaunchConfig {
    LaunchConfig::new(count.div_ceil(BLOCK), BLOCK)
}

/// `row[k]`, the row of nonzero k.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, ascending from 0 to `nonzeros`; `row` has room for `nonzeros`.
#[kernel(name = "csr_row_of_each")]
pub unsafe fn row_of_each(rows: u32, nonzeros: u32, row_ptr: Global<u32>, row: GlobalMut<u32>) {
    let bounds = shared_array!(u32; 2);
    let k = thread::index_1d();
    // SAFETY: the kernel's contract; all threads of the block call the search.
    unsafe {
        let r = row_of(rows, nonzeros, row_ptr, bounds);
        if k < u64::from(nonzeros) {
            row.store(k as usize, r);
        }
    }
}

/// `length[i]`, the nonzeros of row `order[i]`; and 0 at `i = rows`, where their scan has the sum. A thread each.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `order` `rows` rows; `length` has room for `rows + 1`.
#[kernel(name = "csr_permuted_lengths")]
pub unsafe fn permuted_lengths(
    rows: u32,
    row_ptr: Global<u32>,
    order: Global<u32>,
    length: GlobalMut<u32>,
) {
    let i = thread::index_1d();
    if i > u64::from(rows) {
        return;
    }
    // SAFETY: rows of the matrix.
    unsafe {
        let mut nonzeros = 0;
        if i < u64::from(rows) {
            let r = order.load(i as usize) as usize;
            nonzeros = row_ptr.load(r + 1) - row_ptr.load(r);
        }
        length.store(i as usize, nonzeros);
    }
}

/// A matrix's columns and values with its row `order[i]` as row i: a thread a nonzero of the new matrix.
///
/// # Safety
///
/// `row_ptr` and `permuted_row_ptr` have `rows + 1` numbers, the lengths of the second those of the first in the order
/// `order`; the others have `nonzeros` elements.
#[kernel(name = "csr_permute_rows", T = [f32, f64])]
pub unsafe fn permute_rows<T: Element>(
    rows: u32,
    nonzeros: u32,
    order: Global<u32>,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    values: Global<T>,
    permuted_row_ptr: Global<u32>,
    permuted_col_idx: GlobalMut<u32>,
    permuted_values: GlobalMut<T>,
) {
    let bounds = shared_array!(u32; 2);
    let k = thread::index_1d();
    // SAFETY: the kernel's contract; all threads of the block call the search.
    unsafe {
        let i = row_of(rows, nonzeros, permuted_row_ptr, bounds) as usize;
        if k >= u64::from(nonzeros) {
            return;
        }
        let k = k as usize;
        let start = row_ptr.load(order.load(i) as usize) as usize;
        let from = start + (k - permuted_row_ptr.load(i) as usize);
        permuted_col_idx.store(k, col_idx.load(from));
        permuted_values.store(k, values.load(from));
    }
}

/// The row of the nonzero that has this thread's number; past the last nonzero any row.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, ascending from 0 to `nonzeros`, of which there are some; `bounds` has room for two
/// rows. All threads of the block call it.
#[inline(always)]
unsafe fn row_of(rows: u32, nonzeros: u32, row_ptr: Global<u32>, bounds: Shared<u32>) -> u32 {
    let k = thread::index_1d().min(u64::from(nonzeros) - 1) as u32;
    let thread = thread::thread_idx_x();
    let first = thread::block_idx_x() * BLOCK;
    // SAFETY: rows below `rows`; two threads write the bounds, all read them after the barrier.
    unsafe {
        // Of two warps, so that the searches go on at the same time.
        if thread == 0 {
            bounds.store(0, search(row_ptr, first, 0, rows - 1));
        } else if thread == WARP_SIZE {
            let last = first.saturating_add(BLOCK - 1).min(nonzeros - 1);
            bounds.store(1, search(row_ptr, last, 0, rows - 1));
        }
        thread::sync_threads();
        search(row_ptr, k, bounds.load(0), bounds.load(1))
    }
}

/// The last row from `low` to `high` that starts at nonzero `k` or before: its row, as the empty ones before it start there
/// too.
///
/// # Safety
///
/// `row_ptr` has more than `high` numbers, that of `low` at most `k`.
#[inline(always)]
unsafe fn search(row_ptr: Global<u32>, k: u32, mut low: u32, mut high: u32) -> u32 {
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        // SAFETY: at most `high`.
        if unsafe { row_ptr.load(middle as usize) } <= k {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}
