//! What each row costs, and the lists of the rows of each bin.
//!
//! Three steps for a phase: kernels give each row its bin and count the bins ([`row_work`] and [`long_row_work`], or
//! [`entry_work`](crate::analysis::entry_work::entry_work)), and [`place`](crate::analysis::row_lists::place) writes each bin's rows into its part of the list, while the host fetches the counts.
//! Within a bin the rows' order is the chance of the run, and no result depends on it.
//!
//! A row of A of few nonzeros is a lane's, so that the lanes of a warp write neighbouring results and count their bins
//! together; longer ones are those of groups of eight lanes, four at a time, as in a graph they may all be neighbours, and one
//! after the other would take as many times the memory's latency. The longest are put on a list for blocks of the kernel after.

use crate::analysis::borders::Borders;
use crate::analysis::measure::{Found, GROUP, GROUPS};
use crate::products::bins::{BIN_BITS, BINS, RowWork, WORK, symbolic};
use crate::products::lanes::inclusive_sum;
use crate::products::operands::{Operands, Pattern};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block of these kernels.
const BLOCK: u32 = 256;

/// Threads in a block of [`long_row_work`].
const LONG_BLOCK: u32 = 1024;

/// Blocks of [`long_row_work`], at most: a row after the other.
const LONG_BLOCKS: u32 = 264;

/// Rows of A of up to so many nonzeros are a lane's.
const LANE_ROW: u32 = 24;

/// Rows of A of up to so many nonzeros are that of a group of lanes.
const GROUP_ROW: u32 = 512;

/// The launch of the kernels that take a row a thread.
pub fn launch_rows(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK), BLOCK)
}

/// The launch of [`long_row_work`], if there may be a long row: by the nonzeros of A, and of its longest row if that is known.
pub fn launch_long_rows(nonzeros: u32, longest: Option<u32>) -> Option<LaunchConfig> {
    let most = most_long_rows(nonzeros);
    let may_be = most > 0 && longest.is_none_or(|longest| longest > GROUP_ROW);
    may_be.then(|| LaunchConfig::new(most.min(LONG_BLOCKS), LONG_BLOCK))
}

/// Long rows that a matrix of so many nonzeros may have.
pub const fn most_long_rows(nonzeros: u32) -> u32 {
    nonzeros / (GROUP_ROW + 1)
}

/// For each row of a matrix where it starts and ends, and its first and last column: what the walks want of B, in one
/// load. A thread a row; the columns of an empty row are 2^32 - 1 and 0.
///
/// # Safety
///
/// `b` is what it says, its columns ascending; `extents` has four numbers a row.
#[kernel(name = "spgemm_row_extents")]
pub unsafe fn row_extents(b: Pattern, extents: GlobalMut<u32>) {
    let row = thread::index_1d();
    if row >= u64::from(b.rows) {
        return;
    }
    // SAFETY: `row` is a row of B.
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

/// Where [`row_work`] leaves what it finds out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RowWorkOutput {
    /// [`WORK`] numbers a row.
    pub work: GlobalMut<u32>,
    /// The bin's word of each row.
    pub words: GlobalMut<u32>,
    /// Where each row's columns may be put aside: there is room for as many as its products, or as its span if that is less;
    /// for none of a row of one nonzero of A. Where the rows of a block start is the chance of the run.
    pub starts: GlobalMut<u32>,
    /// The entries of rows of one nonzero of A; 0 for the others, which a kernel will count if they have products.
    pub entries: GlobalMut<u32>,
    /// The rows of each bin.
    pub counts: GlobalMut<u32>,
    /// The products of all rows, and the room that they have.
    pub totals: GlobalMut<u64>,
}

// SAFETY: `repr(C)`, of device pointers.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl KernelParam for RowWorkOutput {}

/// Work and symbolic bin of each row of C whose row of A is not long, and the list of the others: a lane a row, or a group of lanes.
///
/// # Safety
///
/// The operands are what they say, the columns of A rows of B; the output has its lengths, `counts` holds [`BINS`] zeros,
/// `totals` two, `long_count` one; `long_rows` has room for [`most_long_rows`].
#[kernel(name = "spgemm_row_work")]
pub unsafe fn row_work(
    operands: Operands,
    borders: Borders,
    output: RowWorkOutput,
    long_count: GlobalMut<u32>,
    long_rows: GlobalMut<u32>,
) {
    let shared_counts = shared_array!(u32; 64);
    // The products of each warp, and the room before it.
    let shared_totals = shared_array!(u64; 16);
    let row = thread::index_1d();
    let t = thread::thread_idx_x() as usize;
    let lane = warp::lane_id();
    // SAFETY: rows below `rows`; between barriers, what is shared is written by one thread or by atomic operations.
    unsafe {
        if t < BINS as usize {
            shared_counts.store(t, 0);
        }
        thread::sync_threads();
        let is_row = row < u64::from(operands.a.rows);
        let row = row as u32;
        let (start, end) = if is_row { operands.a.row(row) } else { (0, 0) };
        let nonzeros = end - start;
        let mut found = Found::NOTHING;
        if nonzeros <= LANE_ROW {
            found = Found::of(&operands, start, end, 1);
        }
        let is_of_group = nonzeros > LANE_ROW && nonzeros <= GROUP_ROW;
        let of_groups = warp::ballot(FULL_MASK, is_of_group);
        let rank = (of_groups & ((1 << lane) - 1)).count_ones();
        let mut left = of_groups;
        let mut done = 0;
        while left != 0 {
            // The group's row is that with so many of those left before it, if there is one.
            let mut others = left;
            for _ in 0..lane / GROUP {
                others &= others.wrapping_sub(1);
            }
            let owner = others.trailing_zeros() % WARP_SIZE;
            let start = warp::shfl_idx(FULL_MASK, start, owner, WARP_SIZE);
            let end = warp::shfl_idx(FULL_MASK, end, owner, WARP_SIZE);
            let end = if others == 0 { start } else { end };
            let of_lane = Found::of(&operands, start + lane % GROUP, end, GROUP);
            let together = of_lane.joined_in_group();
            let of_row = together.of_lane(rank.wrapping_sub(done) % GROUPS * GROUP);
            if is_of_group && done <= rank && rank < done + GROUPS {
                found = of_row;
            }
            for _ in 0..GROUPS {
                left &= left.wrapping_sub(1);
            }
            done += GROUPS;
        }
        let (mut bin, mut bound) = (BINS, 0);
        if nonzeros > GROUP_ROW {
            let place = long_count.atomic_add(Scope::Device, 0, 1);
            long_rows.store(place as usize, row);
        } else if is_row {
            (bin, bound) = note(&operands, &borders, &output, row, found);
        }
        let peers = warp::match_any(FULL_MASK, bin);
        if bin < BINS && lane == peers.trailing_zeros() {
            shared_counts.atomic_add(bin as usize, peers.count_ones());
        }
        let warp = t / WARP_SIZE as usize;
        let totals = [found.products, bound].map(sum_of_warp);
        // Where the room passes 2^32 the host gives up, so that here it may wrap around.
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

/// Work and symbolic bin of the rows of C whose rows of A are long; a block a row, and then another.
///
/// # Safety
///
/// As for [`row_work`], which has run.
#[kernel(name = "spgemm_long_row_work")]
pub unsafe fn long_row_work(
    operands: Operands,
    borders: Borders,
    output: RowWorkOutput,
    long_count: Global<u32>,
    long_rows: Global<u32>,
) {
    let found_together = shared_array!(u32; 4);
    let t = thread::thread_idx_x();
    // SAFETY: rows of the list; what is shared is written by one thread or by atomic operations between barriers.
    unsafe {
        let count = long_count.load(0);
        let mut index = thread::block_idx_x();
        while index < count {
            let row = long_rows.load(index as usize);
            let (start, end) = operands.a.row(row);
            if t == 0 {
                let Found {
                    products,
                    first,
                    last,
                    runs,
                } = Found::NOTHING;
                found_together.store4(0, [products, first, last, runs]);
            }
            thread::sync_threads();
            let found = Found::of(&operands, start + t, end, LONG_BLOCK).joined();
            if warp::lane_id() == 0 {
                found_together.atomic_add(0, found.products);
                found_together.atomic_min(1, found.first);
                found_together.atomic_max(2, found.last);
                found_together.atomic_min(3, found.runs);
            }
            thread::sync_threads();
            if t == 0 {
                let [products, first, last, runs] = found_together.load4(0);
                let found = Found {
                    products,
                    first,
                    last,
                    runs,
                };
                let (bin, bound) = note(&operands, &borders, &output, row, found);
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

/// The sum of the warp's numbers, by instructions for sums below 2^32.
#[inline(always)]
fn sum_of_warp(number: u32) -> u64 {
    let low = warp::reduce_add(FULL_MASK, number & 0xffff);
    let high = warp::reduce_add(FULL_MASK, number >> 16);
    u64::from(low) + (u64::from(high) << 16)
}

/// Writes down what was found of a row; gives its bin, and how many columns may be put aside.
#[inline(always)]
unsafe fn note(
    operands: &Operands,
    borders: &Borders,
    output: &RowWorkOutput,
    row: u32,
    found: Found,
) -> (u32, u32) {
    let Found {
        products,
        first,
        last,
        runs,
    } = found;
    let span = if products == 0 { 0 } else { last - first + 1 };
    // SAFETY: a row of A, and its nonzeros.
    let (nonzeros, is_run) = unsafe {
        let (start, end) = operands.a.row(row);
        let column = |k: u32| operands.a.col_idx.load(k as usize);
        let is_run =
            runs != 0 && products > 0 && column(end - 1) - column(start) == end - 1 - start;
        (end - start, is_run)
    };
    let bin = borders.symbolic_bin(RowWork {
        products,
        span,
        nonzeros,
        runs: runs != 0,
        is_run,
    });
    let (bound, entries) = if bin == symbolic::COPY {
        (0, products)
    } else {
        (products.min(span), 0)
    };
    let row = row as usize;
    // SAFETY: a row.
    unsafe {
        output.work.store4(
            WORK * row,
            [products, first, span, runs + u32::from(is_run)],
        );
        output.words.store(row, bin | 1 << BIN_BITS);
        output.entries.store(row, entries);
    }
    (bin, bound)
}

/// Adds the block's counts to those of all.
#[inline(always)]
pub(crate) unsafe fn add_counts(shared_counts: Shared<u32>, counts: GlobalMut<u32>) {
    let t = thread::thread_idx_x() as usize;
    if t < BINS as usize {
        // SAFETY: both have a count for each bin; the caller has synchronised.
        unsafe {
            let count = shared_counts.load(t);
            if count > 0 {
                counts.reduce_add(Scope::Device, t, count);
            }
        }
    }
}

const _: () = assert!(BINS == 64 && BLOCK >= BINS && BLOCK / WARP_SIZE == 8);
