//! Marks of the nonzeros with which rows begin, for the kernel [`spmv`](crate::product::spmv).

use crate::product::spmv::{WARPS, first_of_warp};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch of the kernels that have a thread for each of `count` rows.
pub fn launch_rows(count: u32) -> LaunchConfig {
    LaunchConfig::new(count.div_ceil(BLOCK), BLOCK)
}

/// The launch of [`ordinals`], a thread for each warp of each task, and one for the end.
pub fn launch_warps(tasks: u32) -> LaunchConfig {
    let threads = u64::from(tasks) * u64::from(WARPS) + 1;
    LaunchConfig::new(threads.div_ceil(u64::from(BLOCK)) as u32, BLOCK)
}

/// `has_nonzeros[r]`, 1 if row r has nonzeros, else 0. A thread each.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `has_nonzeros` room for `rows`.
#[kernel(name = "spmm_flag_rows_with_nonzeros")]
pub unsafe fn flag_rows(rows: u32, row_ptr: Global<u32>, has_nonzeros: GlobalMut<u32>) {
    let r = thread::index_1d();
    if r < u64::from(rows) {
        let r = r as usize;
        // SAFETY: `r` is below `rows`.
        unsafe {
            let is_full = row_ptr.load(r) < row_ptr.load(r + 1);
            has_nonzeros.store(r, u32::from(is_full));
        }
    }
}

/// Lists the rows that have nonzeros and those that have none, and marks the first nonzero of each. A thread a row.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers; `rank` has for each row the number of rows before it that have nonzeros. `row` and
/// `empty_row` have room for the rows with and without nonzeros. `bits` has a bit for each nonzero, all 0.
#[kernel(name = "spmm_mark_row_starts")]
pub unsafe fn mark_starts(
    rows: u32,
    row_ptr: Global<u32>,
    rank: Global<u32>,
    row: GlobalMut<u32>,
    empty_row: GlobalMut<u32>,
    bits: GlobalMut<u32>,
) {
    let r = thread::index_1d();
    if r >= u64::from(rows) {
        return;
    }
    let r = r as u32;
    // SAFETY: `r` is below `rows`, and its place in a list is that of no other row.
    unsafe {
        let start = row_ptr.load(r as usize);
        let before = rank.load(r as usize);
        if start < row_ptr.load(r as usize + 1) {
            row.store(before as usize, r);
            let (word, bit) = (start / u32::BITS, start % u32::BITS);
            // The bit is 0 so far: no other row begins there.
            bits.atomic_add(Scope::Device, word as usize, 1 << bit);
        } else {
            empty_row.store((r - before) as usize, r);
        }
    }
}

/// `ordinal[w]`, the number of rows that begin before the first nonzero of warp w, for the warps of all tasks; for the
/// end, that of all rows which have nonzeros. A thread each.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, and `rank` too: for each row the number of rows before it that have nonzeros, and
/// for the end that of all. `start` has the first nonzero of each task and the number of nonzeros. `ordinal` has room
/// for a number for each warp of the tasks, and one more.
#[kernel(name = "spmm_rank_warps")]
pub unsafe fn ordinals(
    rows: u32,
    row_ptr: Global<u32>,
    rank: Global<u32>,
    tasks: u32,
    start: Global<u32>,
    ordinal: GlobalMut<u32>,
) {
    let warp = thread::index_1d();
    let warps = u64::from(tasks) * u64::from(WARPS);
    if warp > warps {
        return;
    }
    // SAFETY: `task` is below `tasks`, or the warp is the end; `low` and `middle` are at most `rows`.
    unsafe {
        let (mut low, mut high) = (0, rows);
        if warp == warps {
            low = rows;
        } else {
            let task = (warp / u64::from(WARPS)) as usize;
            let (begin, end) = (start.load(task), start.load(task + 1));
            let first = first_of_warp(begin, end, (warp % u64::from(WARPS)) as u32);
            // The first row that begins at `first` or after it.
            while low < high {
                let middle = low + (high - low) / 2;
                if row_ptr.load(middle as usize) < first {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
        }
        ordinal.store(warp as usize, rank.load(low as usize));
    }
}
