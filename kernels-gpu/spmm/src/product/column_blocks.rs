//! Column blocks: A cut into blocks of columns, `Y = A_1 X_1 + A_2 X_2 + ...`, each product by itself.
//!
//! A product reads rows of X wherever the columns point. Where X is several times larger than the L2 cache most of them come
//! from memory; where a block's rows of X fit the cache, most come from there, at more than twice the rate. The price: Y is
//! read and written once more for each further block, and the ends of rows are met once more.
//!
//! ```text
//! 2 blocks of 2 columns        row_ptr of A       0 3 4
//! [ a b | c . ]                col_idx, values    0a 1b 2c 3d
//! [ . . | . d ]                row_ptr of blocks  0 2 2 | 2 3 4
//!                              col_idx, values    0a 1b | 2c 3d
//! ```
//!
//! The nonzeros are ordered by block, row and column, so that each block is a matrix in CSR of all rows, whose row pointers
//! start where the block before ends.
//!
//! Measured on an NVIDIA H200, f32, 32 features, against one block: on R-MAT graphs of mild skew (.35) 1.47 times as fast on 1,569,960 rows of 168
//! nonzeros in 8 blocks, 1.14 on 576,289 rows of 74 in 2, 1.13 on 2,449,029 rows of 50 in 4; 1.64, 1.3 and 1.15 if all rows are equally long. Slower wherever a
//! row has fewer than 9 nonzeros in a block, and on skewed graphs (.57), whose hot columns stay in the cache anyhow.

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
/// `row_ptr` has `rows + 1` numbers, the columns of a row ascend, `lengths` has room for `rows` times the blocks of the launch.
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
    // SAFETY: a row of A, and its place among the lengths.
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
#[inline(always)]
unsafe fn lower_bound(col_idx: Global<u32>, mut low: u32, mut high: u32, col: u64) -> u32 {
    while low < high {
        let middle = low + (high - low) / 2;
        // SAFETY: a nonzero of the row.
        if u64::from(unsafe { col_idx.load(middle as usize) }) < col {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The nonzeros in the order of the blocks. A warp a row, whose lanes take 32 nonzeros at a time.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `block_row_ptr` is the exclusive prefix sum of [`lengths`], the other pointers have
/// an element for each nonzero, those written apart from those read.
#[kernel(name = "spmm_column_block_copy", T = [f32, f64])]
pub unsafe fn copy<T: Element>(
    rows: u32,
    blocks: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    values: Global<T>,
    block_row_ptr: Global<u32>,
    block_col_idx: GlobalMut<u32>,
    block_values: GlobalMut<T>,
) {
    let row = (thread::block_idx_x() * BLOCK + thread::thread_idx_x()) / WARP_SIZE;
    if row >= rows {
        return;
    }
    let lane = warp::lane_id();
    // SAFETY: nonzeros of the row, and their places in its blocks.
    unsafe {
        let mut from = row_ptr.load(row as usize);
        for block in 0..blocks {
            let place = block as usize * rows as usize + row as usize;
            let to = block_row_ptr.load(place);
            let len = block_row_ptr.load(place + 1) - to;
            let mut k = lane;
            while k < len {
                let (source, target) = ((from + k) as usize, (to + k) as usize);
                block_col_idx.store(target, col_idx.load(source));
                block_values.store(target, values.load(source));
                k += WARP_SIZE;
            }
            from += len;
        }
    }
}
