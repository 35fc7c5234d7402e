//! Whether the columns of each row of a CSR matrix ascend and exist.
//!
//! Nearly all columns are greater than the one before them in the list, and then no row pointer is
//! read. Where a column is not, a row must start: a binary search in the row pointers tells. This
//! is the case at most once a row, and lanes of a warp search in the same cache lines.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// `fault[0] = min(fault[0], k)` for each nonzero k that is out of order: its column is not below
/// `cols`, or not above that of the nonzero before it in its row.
///
/// A thread takes a nonzero and reads its column and the one before: 4 bytes, as a neighbour reads
/// each of them too.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, ascending from 0 to `nonzeros`; there are `nonzeros` columns.
#[kernel(name = "csr_check_columns")]
pub unsafe fn check_columns(
    rows: u32,
    cols: u32,
    nonzeros: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    fault: GlobalMut<u32>,
) {
    let k = thread::index_1d();
    if k >= u64::from(nonzeros) {
        return;
    }
    let k = k as u32;
    // SAFETY: `k` is below `nonzeros`, checked above.
    unsafe {
        let column = col_idx.load(k as usize);
        let ascends = k == 0 || col_idx.load(k as usize - 1) < column;
        if column >= cols || !(ascends || is_start(rows, row_ptr, k)) {
            fault.atomic_min(Scope::Device, 0, k);
        }
    }
}

/// Whether a row starts at nonzero k.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` ascending numbers, and the last one is greater than k.
#[inline(always)]
unsafe fn is_start(rows: u32, row_ptr: Global<u32>, k: u32) -> bool {
    let (mut low, mut high) = (0, rows);
    // SAFETY: `middle` is below `rows`, and `low` is at most `rows`.
    unsafe {
        while low < high {
            let middle = low + (high - low) / 2;
            if row_ptr.load(middle as usize) < k {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        row_ptr.load(low as usize) == k
    }
}
