//! Keys by which a [sort](warprow_kernels_matrix::primitives::sort) puts rows that share columns
//! next to each other.
//!
//! - The first column of each row, its most frequent column, or its number of nonzeros.
//! - Labels, by label propagation (Raghavan, Albert and Kumara, "Near linear time algorithm to
//!   detect community structures in large-scale networks", Physical Review E 76, 2007): In each
//!   round, a row takes the label that most of its columns have. After a few rounds, the rows of a
//!   community have one label. Here all rows take their labels at once, and of equally frequent
//!   labels the least, so that the result is the same in every run. A row of more than 32 nonzeros
//!   samples four runs of 8 of them, other ones in each round. So a warp counts the labels with one
//!   `match_any` and no table. The first label of a row is its first column: where all columns have
//!   labels of their own, that is the least of the equally frequent ones.

use super::hash::mix;
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// No label. A label is a column, so it is below the number of columns. A sort by as many bits as that number has sees
/// only ones here, which no column has: such rows come last.
pub const NO_LABEL: u32 = u32::MAX;

/// The launch of the kernels that have a thread for each of `count` rows, columns or nonzeros.
pub fn launch_threads(count: u32) -> LaunchConfig {
    LaunchConfig::new(count.div_ceil(BLOCK), BLOCK)
}

/// Rows of a warp of [`propagate_labels`]: it waits for the loads of all of them together.
const ROWS_PER_WARP: u32 = 4;

// The loop over them is unrolled by hand.
const _: () = assert!(ROWS_PER_WARP == 4);

/// Nonzeros that follow one another in the sample of a long row: the columns of a run are in one sector or two.
const SAMPLED_RUN: u32 = 8;

/// The launch of [`propagate_labels`] for `rows` rows.
pub fn launch_labels(rows: u32) -> LaunchConfig {
    launch_warps(rows.div_ceil(ROWS_PER_WARP))
}

/// The launch of so many warps; of [`least_ranks`], which has one for each row.
pub fn launch_warps(warps: u32) -> LaunchConfig {
    LaunchConfig::new(warps.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// `key[r]`, the first column of row r; [`NO_LABEL`] if the row is empty, so that it comes last. A thread each.
///
/// # Safety
///
/// `row_ptr` and `col_idx` are those of a matrix of `rows` rows; `key` has room for `rows`.
#[kernel(name = "order_first_columns")]
pub unsafe fn first_columns(
    rows: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    key: GlobalMut<u32>,
) {
    let r = thread::index_1d();
    if r >= u64::from(rows) {
        return;
    }
    let r = r as usize;
    // SAFETY: `r` is below `rows`; `start` is a nonzero if the row has one.
    unsafe {
        let (start, end) = (row_ptr.load(r), row_ptr.load(r + 1));
        let first = if start < end {
            col_idx.load(start as usize)
        } else {
            NO_LABEL
        };
        key.store(r, first);
    }
}

/// `key[r]`, columns minus the nonzeros of row r, so that the longest rows have the least keys. A thread each.
///
/// # Safety
///
/// `row_ptr` is that of a matrix of `rows` rows without duplicates and `cols` columns; `key` has room for `rows`.
#[kernel(name = "order_missing_columns")]
pub unsafe fn missing_columns(rows: u32, cols: u32, row_ptr: Global<u32>, key: GlobalMut<u32>) {
    let r = thread::index_1d();
    if r < u64::from(rows) {
        let r = r as usize;
        // SAFETY: `r < rows`, checked above; `row_ptr` has `rows + 1` numbers and `key` has `rows`.
        unsafe { key.store(r, cols - (row_ptr.load(r + 1) - row_ptr.load(r))) };
    }
}

/// Subtracts from `key[c]` the nonzeros of column c, so that the most frequent columns have the least keys. A thread a
/// nonzero.
///
/// # Safety
///
/// There are `nonzeros` columns, each with a key.
#[kernel(name = "order_count_columns")]
pub unsafe fn count_columns(nonzeros: u32, col_idx: Global<u32>, key: GlobalMut<u32>) {
    let k = thread::index_1d();
    if k < u64::from(nonzeros) {
        // SAFETY: `k` is below `nonzeros`, and its column has a key; threads only add to keys, by atomics.
        unsafe { key.reduce_add(Scope::Device, col_idx.load(k as usize) as usize, u32::MAX) };
    }
}

/// `rank[order[i]] = i`: a thread each.
///
/// # Safety
///
/// `order` is a permutation of the numbers below `len`; `rank` has room for them.
#[kernel(name = "order_ranks")]
pub unsafe fn ranks(len: u32, order: Global<u32>, rank: GlobalMut<u32>) {
    let i = thread::index_1d();
    if i < u64::from(len) {
        // SAFETY: `order` is a permutation, so each thread writes another rank.
        unsafe { rank.store(order.load(i as usize) as usize, i as u32) };
    }
}

/// `key[r]`, the least rank among the columns of row r; `cols` if it has none. A warp each.
///
/// # Safety
///
/// `row_ptr` and `col_idx` are those of a matrix of `rows` x `cols`, `rank` has the rank of each column; `key` has room
/// for `rows`.
#[kernel(name = "order_least_ranks")]
pub unsafe fn least_ranks(
    rows: u32,
    cols: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    rank: Global<u32>,
    key: GlobalMut<u32>,
) {
    let row = (thread::index_1d() / u64::from(WARP_SIZE)) as usize;
    if row >= rows as usize {
        return;
    }
    let lane = warp::lane_id() as usize;
    // SAFETY: `row` is below `rows`, `k` is a nonzero of it, and its column has a rank.
    unsafe {
        let end = row_ptr.load(row + 1) as usize;
        let mut k = row_ptr.load(row) as usize + lane;
        let mut least = cols;
        while k < end {
            least = least.min(rank.load(col_idx.load(k) as usize));
            k += WARP_SIZE as usize;
        }
        let least = warp::reduce_min(FULL_MASK, least);
        if lane == 0 {
            key.store(row, least);
        }
    }
}

/// `label[r]`, the most frequent label of the columns of row r, and of equally frequent ones the least; [`NO_LABEL`] if
/// no column of the sample has a label. A warp takes four rows; a nonzero of the sample costs its column and a label, 4
/// bytes each.
///
/// # Safety
///
/// `row_ptr` and `col_idx` are those of a matrix of `rows` rows, `label_of_column` has a number for each column, its
/// label or [`NO_LABEL`]; `label` has room for `rows`.
#[kernel(name = "order_propagate_labels")]
pub unsafe fn propagate_labels(
    rows: u32,
    round: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    label_of_column: Global<u32>,
    label: GlobalMut<u32>,
) {
    let first = thread::index_1d() / u64::from(WARP_SIZE) * u64::from(ROWS_PER_WARP);
    if first >= u64::from(rows) {
        return;
    }
    let first = first as u32;
    let lane = warp::lane_id();
    // SAFETY: rows below `rows` have two pointers, `k` is below the nonzeros of its row, and each column has a label.
    unsafe {
        // A row past the last one is empty.
        let start: [u32; ROWS_PER_WARP as usize + 1] =
            array::from_fn(|i| row_ptr.load(first.saturating_add(i as u32).min(rows) as usize));
        let mine: [u32; ROWS_PER_WARP as usize] = array::from_fn(|i| {
            let nonzeros = start[i + 1] - start[i];
            if lane >= nonzeros {
                return NO_LABEL;
            }
            let mut k = lane;
            if nonzeros > WARP_SIZE {
                let in_run = lane % SAMPLED_RUN;
                let run = u64::from(lane - in_run) * u64::from(nonzeros) / u64::from(WARP_SIZE);
                let step = run as u32 + in_run;
                let shift = mix((first + i as u32) ^ round.rotate_right(8)) % nonzeros;
                let left = nonzeros - shift;
                k = if step < left {
                    shift + step
                } else {
                    step - left
                };
            }
            label_of_column.load(col_idx.load((start[i] + k) as usize) as usize)
        });
        let mut of_lane = 0;
        unroll!(i in 0..4 {
            // Lanes without a nonzero count as 0, and so do columns without a label.
            let counts = u32::from(mine[i] != NO_LABEL);
            let same = warp::match_any(FULL_MASK, mine[i]).count_ones() * counts;
            let most = warp::reduce_max(FULL_MASK, same);
            let candidate = if same == most { mine[i] } else { NO_LABEL };
            let least = warp::reduce_min(FULL_MASK, candidate);
            if lane == i as u32 {
                of_lane = least;
            }
        });
        if lane < ROWS_PER_WARP && lane < rows - first {
            label.store((first + lane) as usize, of_lane);
        }
    }
}
