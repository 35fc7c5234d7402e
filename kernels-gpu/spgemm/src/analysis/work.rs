//! The work of each row and its symbolic bin: the first step of a product.
//!
//! Three steps serve each phase. Kernels give each row a bin and count the bins: [`row_work`] and
//! [`long_row_work`] here, [`numeric_bins`](crate::analysis::numeric_bins::numeric_bins) for the
//! numeric phase. The host fetches the counts. Meanwhile
//! [`fill_row_lists`](crate::analysis::row_lists::fill_row_lists) lists the rows of each bin.
//!
//! | nonzeros of the row of A | measured by |
//! |---|---|
//! | at most 24 | a lane, so a warp writes neighbouring results and counts its bins together |
//! | at most 512 | a group of 8 lanes; a warp takes four such rows at a time, to overlap their loads |
//! | more | a block of [`long_row_work`], from a list |

mod nearness;

use crate::analysis::bin_limits::BinLimits;
use crate::analysis::measure::{GROUP, GROUPS, RowMeasure};
use crate::products::bins::{BIN_BITS, BINS, RowWork, WORK_WORDS, symbolic};
use crate::products::lanes::inclusive_sum;
use crate::products::operands::{CsrPattern, OperandPatterns};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use nearness::are_near;

/// Threads in a block of [`row_work`] and of the kernels that take a row per thread.
const BLOCK: u32 = 256;

/// Threads in a block of [`long_row_work`].
const LONG_BLOCK: u32 = 1024;

/// Maximum number of blocks of [`long_row_work`]; a block takes one row after the other.
const LONG_BLOCKS: u32 = 264;

/// A row of A of at most this many nonzeros is measured by a lane.
const LANE_ROW: u32 = 24;

/// A row of A of at most this many nonzeros is measured by a group of lanes.
const GROUP_ROW: u32 = 512;

/// The launch of the kernels that take a row per thread.
pub fn launch_rows(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK), BLOCK)
}

/// The rows that a warp of [`row_work`] takes: 32 if lanes measure most rows alone. Else the largest
/// power of two that still gives rows to each of so many resident warps, from 4 (a row for each group
/// of lanes) to 32.
pub fn rows_of_warp(rows: u32, nonzeros: u32, resident_warps: u32) -> u32 {
    if u64::from(nonzeros) <= u64::from(rows) * u64::from(LANE_ROW) {
        return WARP_SIZE;
    }
    let each = (rows / resident_warps.max(1)).clamp(GROUPS, WARP_SIZE);
    1 << each.ilog2()
}

/// The launch of [`row_work`].
pub fn launch_row_work(rows: u32, rows_of_warp: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE * rows_of_warp), BLOCK)
}

/// The launch of [`long_row_work`] if A can have a long row, by its nonzeros, and by those of its
/// longest row if that is known.
pub fn launch_long_rows(nonzeros: u32, longest: Option<u32>) -> Option<LaunchConfig> {
    let most = max_long_rows(nonzeros);
    let may_be_long = longest.is_none_or(|longest| longest > GROUP_ROW);
    (most > 0 && may_be_long).then(|| LaunchConfig::new(most.min(LONG_BLOCKS), LONG_BLOCK))
}

/// Maximum number of long rows in a matrix with this many nonzeros.
pub const fn max_long_rows(nonzeros: u32) -> u32 {
    nonzeros / (GROUP_ROW + 1)
}

/// For each row of a matrix its start, end, first column and last column: what kernels read of a
/// row of B, in one 16-byte load.
///
/// A thread takes a row. The columns of an empty row are 2^32 - 1 and 0.
///
/// # Safety
///
/// `b` is a valid pattern (see [`OperandPatterns`]); `extents` has four numbers per row.
#[kernel(name = "spgemm_row_extents")]
pub unsafe fn row_extents(b: CsrPattern, extents: GlobalMut<u32>) {
    let row = thread::index_1d();
    if row >= u64::from(b.rows) {
        return;
    }
    // SAFETY: `row` is below `b.rows`, checked above; a row with `start < end` has a first and a
    // last nonzero.
    unsafe {
        let (start, end) = b.row(row as u32);
        let (mut first, mut last) = (u32::MAX, 0);
        if start < end {
            first = b.col_idx.load(start as usize);
            last = b.col_idx.load(end as usize - 1);
        }
        extents.store4(4 * row as usize, [start, end, first, last]);
    }
}

/// Where [`row_work`] and [`long_row_work`] write.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct RowWorkOutput {
    /// [`WORK_WORDS`] numbers per row.
    pub work: GlobalMut<u32>,
    /// For each row its symbolic bin, with 1 as the number of its chunks.
    pub words: GlobalMut<u32>,
    /// Where each row's columns may be staged. A row has room for as many columns as its products
    /// or its span, whichever is less; a row of one nonzero of A has none, and neither has one
    /// that is merged. Where the rows of a block start depends on timing.
    pub starts: GlobalMut<u32>,
    /// The number of entries of rows of one nonzero of A; 0 for the others, which a symbolic kernel
    /// counts.
    pub entries: GlobalMut<u32>,
    /// The number of rows of each bin.
    pub counts: GlobalMut<u32>,
    /// The products of all rows, and the room of all rows.
    pub totals: GlobalMut<u64>,
}

/// Work and symbolic bin of each row of C whose row of A is not long, and the list of the long
/// ones.
///
/// The first `rows_of_warp` lanes of a warp take a row each. A lane measures short rows alone; for
/// longer ones, groups of 8 lanes measure four rows at a time. A nonzero of A costs 20 bytes: its
/// column and the extents of one row of B.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The arrays of `output` have a number per row,
/// `work` has [`WORK_WORDS`]. `counts` holds [`BINS`] zeros, `totals` two zeros and `long_count`
/// one; `long_rows` has room for [`max_long_rows`]. `rows_of_warp` is at most 32, and 32 if rows may
/// be merged. The launch is [`launch_row_work`]'s.
#[kernel(name = "spgemm_row_work")]
pub unsafe fn row_work(
    operands: OperandPatterns,
    bin_limits: BinLimits,
    output: RowWorkOutput,
    rows_of_warp: u32,
    long_count: GlobalMut<u32>,
    long_rows: GlobalMut<u32>,
) {
    let shared_counts = shared_array!(u32; 64);
    // The products of each warp, and where the room of its rows starts.
    let shared_totals = shared_array!(u64; 16);
    let t = thread::thread_idx_x() as usize;
    let lane = warp::lane_id();
    let row = thread::index_1d() / u64::from(WARP_SIZE) * u64::from(rows_of_warp) + u64::from(lane);
    // SAFETY: `row` is below `a.rows` where `is_row` holds, and only then is it used. The list of
    // long rows has room for as many as A can have. What is shared is written by one thread or by
    // atomic operations, between barriers that all threads reach. All lanes reach the shuffles, as
    // the loop runs on a vote.
    unsafe {
        if t < BINS as usize {
            shared_counts.store(t, 0);
        }
        thread::sync_threads();
        let is_row = lane < rows_of_warp && row < u64::from(operands.a.rows);
        let row = row as u32;
        let (start, end) = if is_row { operands.a.row(row) } else { (0, 0) };
        let nonzeros = end - start;
        let mut found = RowMeasure::EMPTY;
        if nonzeros <= LANE_ROW {
            found = RowMeasure::measure(&operands, start, end, 1);
        }
        let is_of_group = nonzeros > LANE_ROW && nonzeros <= GROUP_ROW;
        let of_groups = warp::ballot(FULL_MASK, is_of_group);
        let rank = (of_groups & ((1 << lane) - 1)).count_ones();
        let mut left = of_groups;
        let mut done = 0;
        while left != 0 {
            // The group takes the row that has as many of the remaining rows before it as there are
            // groups before this one.
            let mut others = left;
            for _ in 0..lane / GROUP {
                others &= others.wrapping_sub(1);
            }
            let owner = others.trailing_zeros() % WARP_SIZE;
            let start = warp::shfl_idx(FULL_MASK, start, owner, WARP_SIZE);
            let end = warp::shfl_idx(FULL_MASK, end, owner, WARP_SIZE);
            let end = if others == 0 { start } else { end };
            let lane_part = RowMeasure::measure(&operands, start + lane % GROUP, end, GROUP);
            let together = lane_part.reduce_group();
            let of_row = together.of_lane(rank.wrapping_sub(done) % GROUPS * GROUP);
            if is_of_group && done <= rank && rank < done + GROUPS {
                found = of_row;
            }
            for _ in 0..GROUPS {
                left &= left.wrapping_sub(1);
            }
            done += GROUPS;
        }
        let is_near = are_near(&operands, &bin_limits, (start, end));
        let (mut bin, mut bound) = (BINS, 0);
        if nonzeros > GROUP_ROW {
            let position = long_count.atomic_add(Scope::Device, 0, 1);
            long_rows.store(position as usize, row);
        } else if is_row {
            (bin, bound) = record_row(&operands, &bin_limits, &output, row, found, is_near);
        }
        let peers = warp::match_any(FULL_MASK, bin);
        if bin < BINS && lane == peers.trailing_zeros() {
            shared_counts.atomic_add(bin as usize, peers.count_ones());
        }
        let warp = t / WARP_SIZE as usize;
        let totals = [found.products, bound].map(sum_of_warp);
        // The host gives up where the room exceeds 2^32, so it may wrap around here.
        let within = inclusive_sum::<32>(FULL_MASK, bound).wrapping_sub(bound);
        if lane == 0 {
            shared_totals.store2(2 * warp, totals);
        }
        thread::sync_threads();
        add_counts(shared_counts, output.counts);
        if t < 2 {
            let mut total = 0;
            for warp in 0..(BLOCK / WARP_SIZE) as usize {
                total += shared_totals.load(2 * warp + t);
            }
            let mut start = output.totals.atomic_add(Scope::Device, t, total);
            if t == 1 {
                for warp in 0..(BLOCK / WARP_SIZE) as usize {
                    let room = shared_totals.load(2 * warp + 1);
                    shared_totals.store(2 * warp + 1, start);
                    start += room;
                }
            }
        }
        thread::sync_threads();
        if bin < BINS {
            let start = shared_totals.load(2 * warp + 1) as u32;
            output
                .starts
                .store(row as usize, start.wrapping_add(within));
        }
    }
}

/// Work and symbolic bin of the rows of C whose rows of A are long. A block takes one row of the
/// list, then another.
///
/// # Safety
///
/// As for [`row_work`], which has run with the same arguments. The launch is
/// [`launch_long_rows`]'s.
#[kernel(name = "spgemm_long_row_work")]
pub unsafe fn long_row_work(
    operands: OperandPatterns,
    bin_limits: BinLimits,
    output: RowWorkOutput,
    long_count: Global<u32>,
    long_rows: Global<u32>,
) {
    let found_together = shared_array!(u32; 4);
    let t = thread::thread_idx_x();
    // SAFETY: `index` is below the number of listed rows. What is shared is written by one thread
    // or by atomic operations between barriers, which all threads reach: `index` and `count` are
    // the same for all.
    unsafe {
        let count = long_count.load(0);
        let mut index = thread::block_idx_x();
        while index < count {
            let row = long_rows.load(index as usize);
            let (start, end) = operands.a.row(row);
            if t == 0 {
                let RowMeasure {
                    products,
                    first,
                    last,
                    b_rows_are_runs,
                } = RowMeasure::EMPTY;
                found_together.store4(0, [products, first, last, b_rows_are_runs]);
            }
            thread::sync_threads();
            let found = RowMeasure::measure(&operands, start + t, end, LONG_BLOCK).reduce_warp();
            if warp::lane_id() == 0 {
                found_together.atomic_add(0, found.products);
                found_together.atomic_min(1, found.first);
                found_together.atomic_max(2, found.last);
                found_together.atomic_min(3, found.b_rows_are_runs);
            }
            thread::sync_threads();
            if t == 0 {
                let [products, first, last, b_rows_are_runs] = found_together.load4(0);
                let found = RowMeasure {
                    products,
                    first,
                    last,
                    b_rows_are_runs,
                };
                let (bin, bound) = record_row(&operands, &bin_limits, &output, row, found, false);
                output.counts.reduce_add(Scope::Device, bin as usize, 1);
                let totals = output.totals;
                totals.reduce_add(Scope::Device, 0, u64::from(products));
                let start = totals.atomic_add(Scope::Device, 1, u64::from(bound));
                output.starts.store(row as usize, start as u32);
            }
            thread::sync_threads();
            index += thread::grid_dim_x();
        }
    }
}

/// The sum of a number per lane. `redux.add` has 32 bits, so the halves are added up apart.
#[inline(always)]
fn sum_of_warp(number: u32) -> u64 {
    let low = warp::reduce_add(FULL_MASK, number & 0xffff);
    let high = warp::reduce_add(FULL_MASK, number >> 16);
    u64::from(low) + (u64::from(high) << 16)
}

/// Writes the work, the bin and the entries of a measured row. Gives its bin and the room for its
/// columns.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]), `row` is a row of A, and `output` is as
/// [`row_work`] asks.
#[inline(always)]
unsafe fn record_row(
    operands: &OperandPatterns,
    bin_limits: &BinLimits,
    output: &RowWorkOutput,
    row: u32,
    found: RowMeasure,
    is_near: bool,
) -> (u32, u32) {
    let RowMeasure {
        products,
        first,
        last,
        b_rows_are_runs,
    } = found;
    let span = if products == 0 { 0 } else { last - first + 1 };
    // SAFETY: `row` is a row of A, by the contract; a row with products has nonzeros.
    let (nonzeros, a_row_is_run) = unsafe {
        let (start, end) = operands.a.row(row);
        let column = |k: u32| operands.a.col_idx.load(k as usize);
        let a_row_is_run = b_rows_are_runs != 0
            && products > 0
            && column(end - 1) - column(start) == end - 1 - start;
        (end - start, a_row_is_run)
    };
    let bin = bin_limits.symbolic_bin(RowWork {
        products,
        span,
        nonzeros,
        b_rows_are_runs: b_rows_are_runs != 0,
        a_row_is_run,
        is_near,
    });
    let (bound, entries) = match bin {
        symbolic::COPY => (0, products),
        symbolic::MERGE..symbolic::SORT => (0, 0),
        _ => (products.min(span), 0),
    };
    let row = row as usize;
    // SAFETY: the arrays have a number per row, by the contract.
    unsafe {
        output.work.store4(
            WORK_WORDS * row,
            [
                products,
                first,
                span,
                b_rows_are_runs + u32::from(a_row_is_run),
            ],
        );
        output.words.store(row, bin | 1 << BIN_BITS);
        output.entries.store(row, entries);
    }
    (bin, bound)
}

/// Adds the block's counts of each bin to those of the device.
///
/// # Safety
///
/// Both arrays have [`BINS`] numbers, and the block has synchronised since the last change of the
/// shared ones.
#[inline(always)]
pub(crate) unsafe fn add_counts(shared_counts: Shared<u32>, counts: GlobalMut<u32>) {
    let t = thread::thread_idx_x() as usize;
    if t < BINS as usize {
        // SAFETY: `t` is below `BINS`, checked above.
        unsafe {
            let count = shared_counts.load(t);
            if count > 0 {
                counts.reduce_add(Scope::Device, t, count);
            }
        }
    }
}

const _: () = assert!(BINS == 64 && BLOCK >= BINS && BLOCK / WARP_SIZE == 8);
