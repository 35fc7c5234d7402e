//! Whether the columns of each row of a CSR matrix ascend and exist.
//!
//! Nearly all columns are greater than the one before them in the list, and then no row pointer is
//! read. Where a column is not, a row must start: a binary search in the row pointers tells. This
//! is the case at most once a row, and lanes of a warp search in the same cache lines.

use crate::unroll;
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Nonzeros of a thread. A warp waits for the searches of its lanes, so with more nonzeros it waits
/// less often.
const PER_THREAD: u32 = 4;

/// The launch for so many nonzeros.
pub fn launch(nonzeros: u32) -> LaunchConfig {
    LaunchConfig::new(nonzeros.div_ceil(BLOCK * PER_THREAD), BLOCK)
}

/// `fault[0] = min(fault[0], k)` for each nonzero k that is out of order: its column is not below
/// `cols`, or not above that of the nonzero before it in its row. If the row pointers do not ascend
/// from 0 to `nonzeros`, any number may be left in `fault[0]`.
///
/// A thread takes four nonzeros. It reads their columns, 16 bytes, and the column before, which a
/// neighbour reads too.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, and there are `nonzeros` columns, aligned to 16 bytes. The
/// launch is [`launch`]'s.
#[kernel(name = "csr_check_columns")]
pub unsafe fn check_columns(
    rows: u32,
    cols: u32,
    nonzeros: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    fault: GlobalMut<u32>,
) {
    let first = thread::index_1d() * u64::from(PER_THREAD);
    if first >= u64::from(nonzeros) {
        return;
    }
    let first = first as u32;
    let left = (nonzeros - first).min(PER_THREAD);
    // SAFETY: `first` is below `nonzeros`, checked above, and `left` nonzeros start there.
    unsafe {
        let columns: [u32; PER_THREAD as usize] = if left == PER_THREAD {
            col_idx.load4(first as usize)
        } else {
            array::from_fn(|i| {
                if (i as u32) < left {
                    col_idx.load(first as usize + i)
                } else {
                    u32::MAX
                }
            })
        };
        // Nonzero 0 is not above any other.
        let mut before = u32::MAX;
        if first > 0 {
            before = col_idx.load(first as usize - 1);
        }
        // Bit i is for nonzero `first + i`.
        let (mut outside, mut not_above) = (0, 0);
        unroll!(i in 0..4 {
            outside |= u32::from(columns[i] >= cols) << i;
            not_above |= u32::from(columns[i] <= before) << i;
            before = columns[i];
        });
        let all = (1 << left) - 1;
        outside &= all;
        not_above &= all;
        if outside != 0 {
            fault.atomic_min(Scope::Device, 0, first + outside.trailing_zeros());
        }
        while not_above != 0 {
            let k = first + not_above.trailing_zeros();
            if !is_start(rows, row_ptr, k) {
                fault.atomic_min(Scope::Device, 0, k);
            }
            not_above &= not_above - 1;
        }
    }
}

/// Whether a row starts at nonzero k, if the row pointers ascend.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers.
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
