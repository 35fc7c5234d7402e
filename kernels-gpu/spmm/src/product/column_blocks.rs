//! Column blocks: A is divided into blocks of columns, `Y = A_1 X_1 + A_2 X_2 + ...`, each product by itself.
//!
//! A product reads rows of X wherever the columns point. If X is several times larger than the L2 cache, most of them
//! come from memory. If a block's rows of X fit the cache, most come from there, at more than twice the rate. The price
//! of a further block is that Y is read and written once more, and that each row has one more end.
//!
//! ```text
//! 2 blocks of 2 columns        row_ptr of A       0 3 4
//! [ a b | c . ]                col_idx, values    0a 1b 2c 3d
//! [ . . | . d ]                row_ptr of blocks  0 2 2 | 2 3 4
//!                              col_idx, values    0a 1b | 2c 3d
//! ```
//!
//! The nonzeros are sorted by block, row and column. So each block is a CSR matrix of all rows, whose row pointers
//! start where those of the block before end.
//!
//! It pays on long rows without hubs: 1.13 to 1.64 times as fast on rows of 50 to 168 nonzeros in two to eight blocks,
//! on an H200. It is slower where a row has fewer than 9 nonzeros in a block, and on graphs with hubs, whose frequent
//! rows of X stay in the cache anyway.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads in a block of these kernels.
const BLOCK: u32 = 256;

/// The launch of [`lengths`], a thread for each row of each block.
pub fn launch_lengths(rows: u32, blocks: u32) -> LaunchConfig {
    LaunchConfig::new((rows.div_ceil(BLOCK), blocks), BLOCK)
}

/// The launch of [`copy`], a warp a row.
pub fn launch_copy(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// `lengths[block * rows + row]`, the nonzeros of each row of each block of `block_cols` columns. A thread each.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, the columns of a row ascend, `lengths` has room for `rows` times the blocks of the
/// launch.
#[kernel(name = "spmm_column_block_lengths")]
pub unsafe fn lengths(
    rows: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    block_cols: u32,
    lengths: GlobalMut<u32>,
) {
    let row = thread::block_idx_x() * BLOCK + thread::thread_idx_x();
    let block = thread::block_idx_y();
    if row >= rows {
        return;
    }
    // SAFETY: `row` is below `rows`, and the launch has as many blocks along y as `lengths` has room for.
    unsafe {
        let (start, end) = (row_ptr.load(row as usize), row_ptr.load(row as usize + 1));
        let first_col = u64::from(block) * u64::from(block_cols);
        let from = lower_bound(col_idx, start, end, first_col);
        let to = lower_bound(col_idx, from, end, first_col + u64::from(block_cols));
        let place = block as usize * rows as usize + row as usize;
        lengths.store(place, to - from);
    }
}

/// The first of the nonzeros from `low` to `high` with a column of at least `col`; `high` if there is none.
///
/// # Safety
///
/// They are nonzeros of one row, sorted by column.
#[inline(always)]
unsafe fn lower_bound(col_idx: Global<u32>, mut low: u32, mut high: u32, col: u64) -> u32 {
    while low < high {
        let middle = low + (high - low) / 2;
        // SAFETY: `middle` is from `low` to `high`, without `high`.
        if u64::from(unsafe { col_idx.load(middle as usize) }) < col {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Copies the columns of the nonzeros in the order of the blocks, and each nonzero's number in the given matrix; if
/// the nonzeros have numbers of their own, in `source`, those. Else `source` is null. A warp a row; its lanes take 32
/// nonzeros at a time.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `block_row_ptr` is the exclusive prefix sum of [`lengths`], the other pointers
/// have an element for each nonzero, those written apart from those read.
#[kernel(name = "spmm_column_block_copy")]
pub unsafe fn copy(
    rows: u32,
    blocks: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    source: Global<u32>,
    block_row_ptr: Global<u32>,
    block_col_idx: GlobalMut<u32>,
    block_source: GlobalMut<u32>,
) {
    // The number of the thread may exceed 2^32, that of its row may not.
    let row = thread::block_idx_x() * (BLOCK / WARP_SIZE) + thread::thread_idx_x() / WARP_SIZE;
    if row >= rows {
        return;
    }
    let lane = warp::lane_id();
    // SAFETY: `row` is below `rows`; its nonzeros go to the places that `block_row_ptr` keeps for it in each block.
    unsafe {
        let mut from = row_ptr.load(row as usize);
        for block in 0..blocks {
            let place = block as usize * rows as usize + row as usize;
            let to = block_row_ptr.load(place);
            let len = block_row_ptr.load(place + 1) - to;
            let mut k = lane;
            while k < len {
                let (old, new) = ((from + k) as usize, (to + k) as usize);
                block_col_idx.store(new, col_idx.load(old));
                let mut number = from + k;
                if source.address() != 0 {
                    number = source.load(old);
                }
                block_source.store(new, number);
                k += WARP_SIZE;
            }
            from += len;
        }
    }
}
