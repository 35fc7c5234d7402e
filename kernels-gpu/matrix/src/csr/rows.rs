//! The row of each nonzero, and the rows of a CSR matrix in another order.
//!
//! A block takes 1024 nonzeros, whatever the lengths of the rows, and each of its threads finds the rows of four of
//! them by binary search in the row pointers. Two threads of each block search all row pointers, for the first and the
//! last nonzero of the block. The other threads search only between these two rows, which the L1 cache holds.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Nonzeros of a thread.
const NONZEROS_PER_THREAD: u32 = 4;

/// Nonzeros of a block.
const TILE: u32 = BLOCK * NONZEROS_PER_THREAD;

/// The launch of [`row_of_each`] and [`permute_rows`] for `count` nonzeros: a block for each 1024.
pub fn launch(count: u32) -> LaunchConfig {
    LaunchConfig::new(count.div_ceil(TILE), BLOCK)
}

/// `row[k]`, the row of nonzero k, for each nonzero. 4 bytes written for each, and a search in cached row pointers.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, ascending from 0 to `nonzeros`, which is at least 1; `row` has room for `nonzeros`
/// numbers. The launch is [`launch`]'s.
#[kernel(name = "csr_row_of_each")]
pub unsafe fn row_of_each(rows: u32, nonzeros: u32, row_ptr: Global<u32>, row: GlobalMut<u32>) {
    let bounds = shared_array!(u32; 2);
    // SAFETY: all threads of the block call `for_each_nonzero`, which gives numbers below `nonzeros`.
    unsafe {
        for_each_nonzero(rows, nonzeros, row_ptr, bounds, |k, r| row.store(k, r));
    }
}

/// `length[i]`, the number of nonzeros of row `order[i]`, for each i below `rows`; and
/// `length[rows] = 0`, where an exclusive scan puts the sum. A thread per row.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `order` has `rows` row numbers, and `length` has room for
/// `rows + 1` numbers.
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
    // SAFETY: `i` is at most `rows`, checked above, and `order` has rows of the matrix, by the
    // contract.
    unsafe {
        let mut nonzeros = 0;
        if i < u64::from(rows) {
            let r = order.load(i as usize) as usize;
            nonzeros = row_ptr.load(r + 1) - row_ptr.load(r);
        }
        length.store(i as usize, nonzeros);
    }
}

/// The matrix whose row i is row `order[i]` of the given one: for each nonzero its column, and its
/// number in the given matrix. For a nonzero a column is read, and a column and a number are
/// written. If the nonzeros of the given matrix have numbers of their own, in `source`, those are
/// read and written; else `source` is null.
///
/// # Safety
///
/// `order` is a permutation of the rows. `row_ptr` and `permuted_row_ptr` have `rows + 1` numbers
/// from 0 to `nonzeros`, the second for the lengths of the first in the new order. The other arrays
/// have `nonzeros` elements, at least 1. The launch is [`launch`]'s.
#[kernel(name = "csr_permute_rows")]
pub unsafe fn permute_rows(
    rows: u32,
    nonzeros: u32,
    order: Global<u32>,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    source: Global<u32>,
    permuted_row_ptr: Global<u32>,
    permuted_col_idx: GlobalMut<u32>,
    permuted_source: GlobalMut<u32>,
) {
    let bounds = shared_array!(u32; 2);
    // SAFETY: all threads of the block call `for_each_nonzero`, which gives numbers below `nonzeros` and their rows;
    // rows `i` and `order[i]` are equally long.
    unsafe {
        for_each_nonzero(rows, nonzeros, permuted_row_ptr, bounds, |k, i| {
            let start = row_ptr.load(order.load(i as usize) as usize) as usize;
            let from = start + (k - permuted_row_ptr.load(i as usize) as usize);
            permuted_col_idx.store(k, col_idx.load(from));
            let mut number = from as u32;
            if source.address() != 0 {
                number = source.load(from);
            }
            permuted_source.store(k, number);
        });
    }
}

/// Calls `visit` for each nonzero of the calling thread with the nonzero's number and its row. Neighbouring threads
/// have neighbouring nonzeros.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, ascending from 0 to `nonzeros`, which is at least 1. `bounds`
/// has room for two numbers. The launch is [`launch`]'s, and all threads of the block call it.
#[inline(always)]
unsafe fn for_each_nonzero(
    rows: u32,
    nonzeros: u32,
    row_ptr: Global<u32>,
    bounds: Shared<u32>,
    visit: impl Fn(usize, u32),
) {
    let thread = thread::thread_idx_x();
    // The grid has a block for each tile of the nonzeros, so this is one of them.
    let first = thread::block_idx_x() * TILE;
    // SAFETY: the searches stay below `rows`. One thread writes each bound, and all read them after
    // the barrier.
    unsafe {
        // Threads of two warps, so the two searches run at the same time.
        if thread == 0 {
            bounds.store(0, search(row_ptr, first, 0, rows - 1));
        } else if thread == WARP_SIZE {
            let last = first.saturating_add(TILE - 1).min(nonzeros - 1);
            bounds.store(1, search(row_ptr, last, 0, rows - 1));
        }
        thread::sync_threads();
        let (low, high) = (bounds.load(0), bounds.load(1));
        for i in 0..NONZEROS_PER_THREAD {
            let k = u64::from(first) + u64::from(i * BLOCK + thread);
            if k < u64::from(nonzeros) {
                visit(k as usize, search(row_ptr, k as u32, low, high));
            }
        }
    }
}

/// The last row from `low` to `high` that starts at nonzero `k` or before. This is the row of `k`:
/// empty rows before it start there too, and come earlier.
///
/// # Safety
///
/// `row_ptr` has more than `high` numbers, and row `low` starts at `k` or before.
#[inline(always)]
unsafe fn search(row_ptr: Global<u32>, k: u32, mut low: u32, mut high: u32) -> u32 {
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        // SAFETY: `middle <= high`, and `row_ptr` has more than `high` numbers by the contract.
        if unsafe { row_ptr.load(middle as usize) } <= k {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}
