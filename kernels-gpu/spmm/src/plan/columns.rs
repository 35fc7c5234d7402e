//! How the nonzeros spread over the columns and over the rows. From it the plan estimates the hit rates of the caches,
//! and what rows cost.
//!
//! Columns and rows are binned by the logarithm of their number of nonzeros: bin b has those of `2^b` to `2^(b+1) - 1`
//! nonzeros. From the columns' bins follows the share of the nonzeros in the most frequent columns, of which a cache
//! holds the rows of X.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block of these kernels.
const BLOCK: u32 = 256;

/// Nonzeros of a thread of [`count`].
const NONZEROS_PER_THREAD: u32 = 4;

/// Bins of [`bin`]: a count has 32 bits.
pub const BINS: usize = 32;

/// The launch of [`count`] for that many nonzeros.
pub fn launch_count(nonzeros: u32) -> LaunchConfig {
    LaunchConfig::new(nonzeros.div_ceil(BLOCK * NONZEROS_PER_THREAD), BLOCK)
}

/// The launch of [`bin`] and [`lengths`], a thread a column or row.
pub fn launch_bin(cols: u32) -> LaunchConfig {
    LaunchConfig::new(cols.div_ceil(BLOCK), BLOCK)
}

/// `counts[row]`, the nonzeros of each row. A thread each.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `counts` room for `rows`.
#[kernel(name = "spmm_row_lengths")]
pub unsafe fn lengths(rows: u32, row_ptr: Global<u32>, counts: GlobalMut<u32>) {
    let r = thread::index_1d();
    if r < u64::from(rows) {
        let r = r as usize;
        // SAFETY: `r` is below `rows`.
        unsafe { counts.store(r, row_ptr.load(r + 1) - row_ptr.load(r)) };
    }
}

/// `counts[col]`, the nonzeros of each column.
///
/// # Safety
///
/// There are `nonzeros` columns, and a zeroed count for each that may be among them.
#[kernel(name = "spmm_count_columns")]
pub unsafe fn count(nonzeros: u32, col_idx: Global<u32>, counts: GlobalMut<u32>) {
    let first = u64::from(thread::block_idx_x()) * u64::from(BLOCK * NONZEROS_PER_THREAD);
    for i in 0..NONZEROS_PER_THREAD {
        let k = first + u64::from(i * BLOCK + thread::thread_idx_x());
        if k < u64::from(nonzeros) {
            // SAFETY: `k` is below `nonzeros`, and the column has a count.
            unsafe {
                let col = col_idx.load(k as usize);
                counts.atomic_add(Scope::Device, col as usize, 1);
            }
        }
    }
}

/// Counts the columns, or rows, of each bin b in `bins[2 b]`, and their nonzeros in `bins[2 b + 1]`. A thread a column;
/// the lanes whose columns are in one bin add together.
///
/// # Safety
///
/// There is a count for each of `cols` columns; `bins` has two zeroed numbers for each bin.
#[kernel(name = "spmm_bin_columns")]
pub unsafe fn bin(cols: u32, counts: Global<u32>, bins: GlobalMut<u64>) {
    let col = thread::index_1d();
    let count = if col < u64::from(cols) {
        // SAFETY: `col < cols`, checked above, and `counts` has a number for each column.
        unsafe { counts.load(col as usize) }
    } else {
        0
    };
    let mine = 31_u32.wrapping_sub(count.leading_zeros());
    let mut left = warp::ballot(FULL_MASK, count > 0);
    while left != 0 {
        let bin = warp::shfl_idx(FULL_MASK, mine, left.trailing_zeros(), WARP_SIZE);
        let here = count > 0 && mine == bin;
        let lanes = warp::ballot(FULL_MASK, here);
        let mut sum = if here { u64::from(count) } else { 0 };
        let mut mask = WARP_SIZE / 2;
        while mask > 0 {
            sum += warp::shfl_xor(FULL_MASK, sum, mask, WARP_SIZE);
            mask /= 2;
        }
        if warp::lane_id() == 0 {
            // SAFETY: `bin` is the logarithm of a u32, below 32.
            unsafe {
                let columns = u64::from(lanes.count_ones());
                bins.atomic_add(Scope::Device, 2 * bin as usize, columns);
                bins.atomic_add(Scope::Device, 2 * bin as usize + 1, sum);
            }
        }
        left &= !lanes;
    }
}
