//! How the nonzeros spread over the columns and over the rows. From it the plan estimates the hit rates of the caches,
//! and what rows cost.
//!
//! Columns and rows are binned by the logarithm of their number of nonzeros: bin b has those of `2^b` to `2^(b+1) - 1`
//! nonzeros. From the columns' bins the plan computes how often a cache lacks the row of X that a nonzero needs, since
//! a cache holds those that were loaded lately.
//!
//! Large matrices have two [samples](sampled_one_in). The first has one of n nonzeros, for the columns of many nonzeros
//! ([`sample`]). The second has all nonzeros of one column of n, for the columns of few ([`count`]); each of these
//! stands for n columns. Hubs are left out of the second, because additions to one address follow one another.

use super::hash::mix;
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block of these kernels.
const BLOCK: u32 = 256;

/// Nonzeros of a thread of [`count`], and columns or rows that a lane of [`bin`] has in flight.
const BATCH: u32 = 4;

// Loops over a batch are unrolled by hand.
const _: () = assert!(BATCH == 4);

/// Bins of columns or rows: a number of nonzeros has 32 bits.
pub const BINS: usize = 32;

/// Blocks of [`bin`] on a multiprocessor: more would hide latencies better, and add more often to the same bins.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 2;

/// Nonzeros that the first sample has at least.
const MIN_SAMPLED_NONZEROS: u32 = 1 << 17;

/// Columns that the second sample has at least.
const MIN_SAMPLED_COLUMNS: u32 = 512;

/// The smallest sample is one of so many.
const MAX_ONE_IN: u32 = 16;

/// A column with so many nonzeros in the first sample, or more, is estimated from them.
pub const MANY_SAMPLED: u32 = 64;

/// One of how many nonzeros, and of how many columns, is in the samples: a power of two, 1 for a small matrix.
pub fn sampled_one_in(nonzeros: u32, cols: u32) -> u32 {
    let most = (nonzeros / MIN_SAMPLED_NONZEROS).min(cols / MIN_SAMPLED_COLUMNS);
    1 << most.clamp(1, MAX_ONE_IN).ilog2()
}

/// Whether a column is in the second sample, if it has few nonzeros.
#[inline(always)]
fn is_sampled(col: u32, one_in: u32) -> bool {
    mix(col) & (one_in - 1) == 0
}

/// The launch of [`sample`], a thread for each nonzero of the sample.
pub fn launch_sample(nonzeros: u32, one_in: u32) -> LaunchConfig {
    let groups = nonzeros.div_ceil(WARP_SIZE).div_ceil(one_in);
    LaunchConfig::new(groups.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// The launch of [`count`] for that many nonzeros.
pub fn launch_count(nonzeros: u32) -> LaunchConfig {
    LaunchConfig::new(nonzeros.div_ceil(BLOCK * BATCH), BLOCK)
}

/// The launch of [`bin_columns`] and [`bin_rows`] for `count` columns or rows.
pub fn launch_bin(count: u32, multiprocessors: u32) -> LaunchConfig {
    let blocks = count.div_ceil(BLOCK * BATCH);
    let resident = multiprocessors.saturating_mul(BLOCKS_PER_MULTIPROCESSOR);
    LaunchConfig::new(blocks.min(resident.max(1)), BLOCK)
}

/// `sampled[col]`, the nonzeros of each column in the first sample. Of each `32 one_in` consecutive nonzeros a warp
/// takes 32 consecutive ones.
///
/// # Safety
///
/// There are `nonzeros` columns, and a zeroed count for each that may be among them; `one_in` is a power of two.
#[kernel(name = "spmm_sample_columns")]
pub unsafe fn sample(nonzeros: u32, one_in: u32, col_idx: Global<u32>, sampled: GlobalMut<u32>) {
    let group = thread::index_1d() / u64::from(WARP_SIZE);
    let in_group = mix(group as u32) & (one_in - 1);
    let warp = group * u64::from(one_in) + u64::from(in_group);
    let k = warp * u64::from(WARP_SIZE) + u64::from(warp::lane_id());
    if k < u64::from(nonzeros) {
        // SAFETY: `k` is below `nonzeros`, and the column has a count.
        unsafe { sampled.reduce_add(Scope::Device, col_idx.load(k as usize) as usize, 1) };
    }
}

/// `counts[col]`, the nonzeros of each column in the second sample that has few in the first.
///
/// # Safety
///
/// There are `nonzeros` columns, at least 1. Each that may be among them has a zeroed count and, if `one_in` is not 1,
/// a number in `sampled`. `one_in` is a power of two.
#[kernel(name = "spmm_count_columns")]
pub unsafe fn count(
    nonzeros: u32,
    one_in: u32,
    col_idx: Global<u32>,
    sampled: Global<u32>,
    counts: GlobalMut<u32>,
) {
    let first = u64::from(thread::block_idx_x()) * u64::from(BLOCK * BATCH);
    let nonzero = |i: u32| first + u64::from(i * BLOCK + thread::thread_idx_x());
    // SAFETY: only nonzeros below `nonzeros` are loaded, and their columns have numbers.
    unsafe {
        let cols: [u32; BATCH as usize] = array::from_fn(|i| {
            let k = nonzero(i as u32).min(u64::from(nonzeros) - 1);
            col_idx.load(k as usize)
        });
        unroll!(i in 0..4 {
            let col = cols[i] as usize;
            let is_there = nonzero(i as u32) < u64::from(nonzeros);
            let has_few = || one_in == 1 || sampled.load(col) < MANY_SAMPLED;
            if is_there && is_sampled(cols[i], one_in) && has_few() {
                counts.reduce_add(Scope::Device, col, 1);
            }
        });
    }
}

/// Adds up the columns of each bin b in `bins[2 b]`, and their nonzeros in `bins[2 b + 1]`, as the samples tell.
///
/// # Safety
///
/// Each of `cols` columns has a number in `counts` by [`count`] and, if `one_in` is not 1, one in `sampled` by
/// [`sample`]; `bins` has two zeroed numbers for each bin.
#[kernel(name = "spmm_bin_columns")]
pub unsafe fn bin_columns(
    cols: u32,
    one_in: u32,
    sampled: Global<u32>,
    counts: Global<u32>,
    bins: GlobalMut<u64>,
) {
    let column = |col: usize| {
        let mut many = 0;
        if one_in > 1 {
            // SAFETY: a column has a number, as `one_in` is not 1.
            many = unsafe { sampled.load(col) };
        }
        if many >= MANY_SAMPLED {
            (many.saturating_mul(one_in), 1)
        } else {
            // SAFETY: a column has a number, which is 0 unless it is counted in full.
            (unsafe { counts.load(col) }, one_in)
        }
    };
    // SAFETY: the contract of `bin`.
    unsafe { bin(cols, column, bins) }
}

/// The same of the rows.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers; `bins` has two zeroed numbers for each bin.
#[kernel(name = "spmm_bin_rows")]
pub unsafe fn bin_rows(rows: u32, row_ptr: Global<u32>, bins: GlobalMut<u64>) {
    // SAFETY: a row has two pointers.
    let row = |r: usize| unsafe { (row_ptr.load(r + 1) - row_ptr.load(r), 1) };
    // SAFETY: the contract of `bin`.
    unsafe { bin(rows, row, bins) }
}

/// Bins `len` columns or rows. `item` has the nonzeros of one, and for how many it stands. A warp takes 128 at a
/// time, and lane b has the sums of bin b: few threads add to the bins, because additions to one address follow one
/// another.
///
/// # Safety
///
/// All threads of the blocks call it, and `item` is safe for numbers below `len`; `bins` has two numbers for each bin.
#[inline(always)]
unsafe fn bin(len: u32, item: impl Fn(usize) -> (u32, u32), bins: GlobalMut<u64>) {
    let sums = shared_array!(u64; 512);
    let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
    let (mut of_lane, mut nonzeros_of_lane) = (0_u64, 0_u64);
    let mut first = u64::from(BATCH) * (thread::index_1d() - u64::from(lane));
    while first < u64::from(len) {
        let items: [(u32, u32); BATCH as usize] = array::from_fn(|i| {
            let at = first + u64::from(i as u32 * WARP_SIZE + lane);
            if at < u64::from(len) {
                item(at as usize)
            } else {
                (0, 0)
            }
        });
        unroll!(i in 0..4 {
            let (count, weight) = items[i];
            let all = u64::from(count) * u64::from(weight);
            let mine = 31_u32.wrapping_sub(count.leading_zeros());
            let mut left = warp::ballot(FULL_MASK, count > 0);
            while left != 0 {
                let bin = warp::shfl_idx(FULL_MASK, mine, left.trailing_zeros(), WARP_SIZE);
                let here = count > 0 && mine == bin;
                let part = |bits: u32| if here { bits } else { 0 };
                let stand_for = warp::reduce_add(FULL_MASK, part(weight));
                // Two sums, as that of 32 numbers may exceed a u32.
                let low = warp::reduce_add(FULL_MASK, part(all as u32 & 0xffff));
                let high = warp::reduce_add(FULL_MASK, part((all >> 16) as u32));
                if lane == bin {
                    of_lane += u64::from(stand_for);
                    nonzeros_of_lane += u64::from(low) + (u64::from(high) << 16);
                }
                left &= !warp::ballot(FULL_MASK, here);
            }
        });
        first += u64::from(BATCH) * u64::from(thread::grid_dim_x()) * u64::from(BLOCK);
    }
    // SAFETY: each thread has two places of its own in `sums`, which all threads read after the barrier.
    unsafe {
        sums.store(2 * thread as usize, of_lane);
        sums.store(2 * thread as usize + 1, nonzeros_of_lane);
        thread::sync_threads();
        let numbers = 2 * BINS;
        if (thread as usize) < numbers {
            let mut sum = 0;
            for warp in 0..(BLOCK / WARP_SIZE) as usize {
                sum += sums.load(warp * numbers + thread as usize);
            }
            if sum > 0 {
                bins.atomic_add(Scope::Device, thread as usize, sum);
            }
        }
    }
}
