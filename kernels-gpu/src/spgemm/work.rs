//! What each row costs, and the lists of the rows of each bin.
//!
//! Three steps for a phase: a kernel gives each row its bin and counts the bins ([`row_work`], [`entry_work`]), the host
//! fetches the counts, and [`place`](super::place::place) writes each bin's rows into its part of the list. Within a bin the rows' order is the
//! chance of the run, and no result depends on it.

use super::bins::{BIN_BITS, BINS, Borders, RowWork};
use super::lanes::group_mask;
use super::operands::{Operands, Pattern, Structure};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads in a block of these kernels.
const BLOCK: u32 = 256;

/// Lanes that share a row of A.
const LANES: u32 = 8;

/// Rows of A of more nonzeros are a whole block's.
const LONG_ROW: u32 = 512;

/// Numbers that [`row_work`] leaves for a row: products, the first column and the span of the columns, and 1 if its rows of
/// B are all runs of neighbouring columns.
pub const WORK: usize = 4;

/// The launch of the kernels that take a row a thread.
pub fn launch_rows(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK), BLOCK)
}

/// The launch of [`row_work`].
pub fn launch_row_work(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / LANES), BLOCK)
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

/// What [`row_work`] finds out of a row.
#[derive(Clone, Copy)]
struct Found {
    products: u32,
    first: u32,
    last: u32,
    runs: u32,
}

impl Found {
    const NOTHING: Self = Self {
        products: 0,
        first: u32::MAX,
        last: 0,
        runs: 1,
    };

    /// Of every `stride`-th nonzero from `k` on.
    #[inline(always)]
    unsafe fn of(operands: &Operands, mut k: u32, end: u32, stride: u32) -> Self {
        let mut found = Self::NOTHING;
        while k < end {
            // SAFETY: a nonzero of A, a row of B.
            let [b_start, b_end, first, last] = unsafe {
                let column = operands.a.col_idx.load(k as usize) as usize;
                operands.extents.load4(4 * column)
            };
            found.products += b_end - b_start;
            found.first = found.first.min(first);
            found.last = found.last.max(last);
            if b_end > b_start && last - first != b_end - b_start - 1 {
                found.runs = 0;
            }
            k = k.saturating_add(stride);
        }
        found
    }

    /// Of all lanes of the group.
    #[inline(always)]
    fn joined<const LANES: u32>(mut self, mask: u32) -> Self {
        let mut delta = LANES / 2;
        while delta > 0 {
            self.products += warp::shfl_xor(mask, self.products, delta, LANES);
            self.first = self
                .first
                .min(warp::shfl_xor(mask, self.first, delta, LANES));
            self.last = self.last.max(warp::shfl_xor(mask, self.last, delta, LANES));
            self.runs &= warp::shfl_xor(mask, self.runs, delta, LANES);
            delta /= 2;
        }
        self
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
    /// An upper bound of each row's entries: its products, or its span if that is less.
    pub bounds: GlobalMut<u32>,
    /// Zero for each row: its entries, where no kernel will count them.
    pub entries: GlobalMut<u32>,
    /// The rows of each bin.
    pub counts: GlobalMut<u32>,
    /// The sums of products and bounds.
    pub totals: GlobalMut<u64>,
}

// SAFETY: `repr(C)`, of device pointers.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl KernelParam for RowWorkOutput {}

/// Work and symbolic bin of each row of C, 8 lanes a row, or a block where the row of A is long.
///
/// # Safety
///
/// The operands are what they say, the columns of A rows of B; the output has its lengths, `counts` holds [`BINS`] zeros,
/// `totals` two.
#[kernel(name = "spgemm_row_work")]
pub unsafe fn row_work(operands: Operands, borders: Borders, output: RowWorkOutput) {
    let shared_counts = shared_array!(u32; 64);
    let shared_totals = shared_array!(u64; 2);
    // Of the long rows: how many there are, and each; and of one that is at hand, what was found.
    let long_rows = shared_array!(u32; 33);
    let found_together = shared_array!(u32; 4);
    let first_row = thread::block_idx_x() * (BLOCK / LANES);
    let row = first_row + thread::thread_idx_x() / LANES;
    let t = thread::thread_idx_x() as usize;
    let lane = warp::lane_id() % LANES;
    let mask = group_mask::<LANES>();
    // SAFETY: rows below `rows`; between barriers, what is shared is written by one thread or by atomic operations.
    unsafe {
        if t < BINS as usize {
            shared_counts.store(t, 0);
        }
        if t < 2 {
            shared_totals.store(t, 0);
        }
        if t == 0 {
            long_rows.store(0, 0);
        }
        thread::sync_threads();
        if row < operands.a.rows {
            let (start, end) = operands.a.row(row);
            if end - start <= LONG_ROW {
                let found = Found::of(&operands, start + lane, end, LANES).joined::<LANES>(mask);
                if lane == 0 {
                    note(
                        &borders,
                        &output,
                        row,
                        end - start,
                        found,
                        shared_counts,
                        shared_totals,
                    );
                }
            } else if lane == 0 {
                let place = long_rows.atomic_add(0, 1);
                long_rows.store(1 + place as usize, row);
            }
        }
        thread::sync_threads();
        for index in 0..long_rows.load(0) {
            let row = long_rows.load(1 + index as usize);
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
            let thread = thread::thread_idx_x();
            let found = Found::of(&operands, start + thread, end, BLOCK).joined::<32>(u32::MAX);
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
                note(
                    &borders,
                    &output,
                    row,
                    end - start,
                    found,
                    shared_counts,
                    shared_totals,
                );
            }
            thread::sync_threads();
        }
        thread::sync_threads();
        add_counts(shared_counts, output.counts);
        if t < 2 {
            let total = shared_totals.load(t);
            output.totals.reduce_add(Scope::Device, t, total);
        }
    }
}

/// Writes down what was found of a row of `nonzeros` nonzeros of A.
#[inline(always)]
unsafe fn note(
    borders: &Borders,
    output: &RowWorkOutput,
    row: u32,
    nonzeros: u32,
    found: Found,
    shared_counts: Shared<u32>,
    shared_totals: Shared<u64>,
) {
    let Found {
        products,
        first,
        last,
        runs,
    } = found;
    let span = if products == 0 { 0 } else { last - first + 1 };
    let bound = products.min(span);
    let bin = borders.symbolic_bin(RowWork {
        products,
        span,
        nonzeros,
        runs: runs != 0,
    });
    let row = row as usize;
    // SAFETY: a row, and a bin.
    unsafe {
        output
            .work
            .store4(WORK * row, [products, first, span, runs]);
        output.words.store(row, bin | 1 << BIN_BITS);
        output.bounds.store(row, bound);
        output.entries.store(row, 0);
        shared_counts.atomic_add(bin as usize, 1);
        shared_totals.atomic_add(0, u64::from(products));
        shared_totals.atomic_add(1, u64::from(bound));
    }
}

/// The numeric bin of each row, a thread a row: the bin's word, with the row's chunks, and the items of each bin.
///
/// # Safety
///
/// `work` is [`row_work`]'s, `c` the product's row pointers; `words` has a number for each of the rows; `counts` holds
/// [`BINS`] zeros.
#[kernel(name = "spgemm_entry_work")]
pub unsafe fn entry_work(
    a: Pattern,
    work: Global<u32>,
    c: Structure,
    borders: Borders,
    words: GlobalMut<u32>,
    counts: GlobalMut<u32>,
) {
    let shared_counts = shared_array!(u32; 64);
    let row = thread::index_1d();
    let t = thread::thread_idx_x() as usize;
    // SAFETY: rows below `rows`; shared counts are accessed by atomic operations alone between the barriers.
    unsafe {
        if t < BINS as usize {
            shared_counts.store(t, 0);
        }
        thread::sync_threads();
        if row < u64::from(a.rows) {
            let (start, end) = c.row(row as u32);
            let (a_start, a_end) = a.row(row as u32);
            let [products, _, span, runs] = work.load4(WORK * row as usize);
            let work = RowWork {
                products,
                span,
                nonzeros: a_end - a_start,
                runs: runs != 0,
            };
            let (bin, chunks) = borders.numeric_bin(work, end - start);
            words.store(row as usize, bin | chunks << BIN_BITS);
            shared_counts.atomic_add(bin as usize, chunks);
        }
        thread::sync_threads();
        add_counts(shared_counts, counts);
    }
}

/// Adds the block's counts to those of all.
#[inline(always)]
unsafe fn add_counts(shared_counts: Shared<u32>, counts: GlobalMut<u32>) {
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

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> Vec<&'static str> {
    [
        row_extents().entry_points(),
        row_work().entry_points(),
        entry_work().entry_points(),
    ]
    .concat()
}

const _: () = assert!(BINS as usize == 64 && BLOCK >= BINS && WARP_SIZE.is_multiple_of(LANES));
