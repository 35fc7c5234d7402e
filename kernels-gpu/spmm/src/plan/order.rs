//! Keys by which a [sort](warprow_kernels_matrix::primitives::sort) puts rows that share columns
//! next to each other.
//!
//! - The first column of each row, its most frequent column, or its number of nonzeros.
//! - Labels, by label propagation (Raghavan, Albert and Kumara, "Near linear time algorithm to
//!   detect community structures in large-scale networks", Physical Review E 76, 2007): In each
//!   round, a row takes the label that most of its columns have. After a few rounds, the rows of a
//!   community have one label. Here all rows take their labels at once, and of equally frequent
//!   labels the least, so that the result is the same in every run. A row of more than 32 nonzeros
//!   samples 32 of them, other ones in each round. So a warp counts the labels with one `match_any`
//!   and no table.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch of the kernels that have a thread for each of `count` rows, columns or nonzeros.
pub fn launch_threads(count: u32) -> LaunchConfig {
    LaunchConfig::new(count.div_ceil(BLOCK), BLOCK)
}

/// The launch of the kernels that have a warp for each of `rows` rows.
pub fn launch_warps(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// `key[r]`, the first column of row r; `cols` if the row is empty, so that it comes last. A thread each.
///
/// # Safety
///
/// `row_ptr` and `col_idx` are those of a matrix of `rows` rows; `key` has room for `rows`.
#[kernel(name = "order_first_columns")]
pub unsafe fn first_columns(
    rows: u32,
    cols: u32,
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
            cols
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

/// `label[r]`, the most frequent label of the columns of row r, and of equally frequent ones the least; 0 for an empty
/// row. A warp each; a nonzero of the sample costs its column and a label, 4 bytes each.
///
/// # Safety
///
/// `row_ptr` and `col_idx` are those of a matrix of `rows` rows, `label_of_column` has a label below 2^32 - 1 for each
/// column; `label` has room for `rows`.
#[kernel(name = "order_propagate_labels")]
pub unsafe fn propagate_labels(
    rows: u32,
    round: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    label_of_column: Global<u32>,
    label: GlobalMut<u32>,
) {
    let row = thread::index_1d() / u64::from(WARP_SIZE);
    if row >= u64::from(rows) {
        return;
    }
    let row = row as u32;
    let lane = warp::lane_id();
    // SAFETY: `row` is below `rows`, `k` is below its nonzeros, and each column has a label.
    unsafe {
        let start = row_ptr.load(row as usize);
        let nonzeros = row_ptr.load(row as usize + 1) - start;
        // Lanes without a nonzero have a label that no column has, and count as 0.
        let (mut mine, mut counts) = (u32::MAX, 0);
        if lane < nonzeros {
            let mut k = lane;
            if nonzeros > WARP_SIZE {
                let step = u64::from(lane) * u64::from(nonzeros) / u64::from(WARP_SIZE);
                let first = u64::from(scramble(row ^ round.rotate_right(8)));
                k = ((first + step) % u64::from(nonzeros)) as u32;
            }
            mine = label_of_column.load(col_idx.load((start + k) as usize) as usize);
            counts = 1;
        }
        let same = warp::match_any(FULL_MASK, mine).count_ones() * counts;
        let most = warp::reduce_max(FULL_MASK, same);
        let candidate = if same == most { mine } else { u32::MAX };
        let least = warp::reduce_min(FULL_MASK, candidate);
        if lane == 0 {
            label.store(row as usize, if nonzeros == 0 { 0 } else { least });
        }
    }
}

/// A hash of `x`, different for each `x` (the 32-bit finaliser of MurmurHash3).
#[inline(always)]
fn scramble(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}
