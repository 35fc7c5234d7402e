//! Rows of C whose values need no sums: rows of one nonzero of A, and rows that the symbolic phase
//! has computed.
//!
//! | kernel | rows | a warp takes |
//! |---|---|---|
//! | [`copy_products`] | one nonzero of A | 1024 entries: multiples of the row of B |
//! | [`copy_rows`] | short rows with staged columns and values | 16 rows, their entries numbered by prefix sums |
//!
//! With the entries of 16 rows numbered, all 32 lanes have work. With a group of lanes per row,
//! short rows would wait for longer ones. An entry costs its column and value, read and written.

use crate::products::bins::{BIN_BITS, SymbolicValues, symbolic};
use crate::products::lanes::{inclusive_sum, owner, warp_of_grid};
use crate::products::operands::{Factors, OperandPatterns, OutputPattern, RowList};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Entries per lane whose loads are in flight together.
const UNROLL: usize = 4;

/// Rows of a warp of [`copy_rows`].
const ROWS_PER_WARP: u32 = 16;

/// Entries that a warp of [`copy_products`] takes.
pub const CHUNK: u32 = 1024;

/// The launch of [`copy_rows`] for this many rows.
pub fn launch_rows(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE * ROWS_PER_WARP), BLOCK)
}

/// The launch of [`copy_products`] for this many chunks of rows, a warp each.
pub fn launch_products(chunks: u32) -> LaunchConfig {
    LaunchConfig::new(chunks.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// The values of rows of one nonzero of A: those of the row of B, multiplied. Also their columns if
/// C lacks them. A warp takes [`CHUNK`] entries of a row.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The items are chunks of [`CHUNK`] entries of rows
/// with one nonzero of A. `c` is the pattern of their product (see [`OutputPattern`]), and `values`
/// has room for its entries. The launch is [`launch_products`]'s.
#[kernel(name = "spgemm_copy_products", T = [f32, f64])]
pub unsafe fn copy_products<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    c: OutputPattern,
    values: GlobalMut<T>,
) {
    let (item, lane) = (warp_of_grid(), warp::lane_id());
    if item >= items.count {
        return;
    }
    // SAFETY: `item` is below `items.count`, checked above. The row of C has as many
    // entries as the row of B, and `p` is below that number.
    unsafe {
        let [row, chunk] = items.load(item);
        let k = operands.a.row_ptr.load(row as usize) as usize;
        let factor = factors.a.load(k);
        let (start, end) = operands.b.row(operands.a.col_idx.load(k));
        let to = c.row_ptr.load(row as usize);
        let first = chunk * CHUNK;
        let end_of_chunk = first + (end - start - first).min(CHUNK);
        let mut p = first + lane;
        while p < end_of_chunk {
            let value = multiple(factor, factors.b.load((start + p) as usize));
            values.store((to + p) as usize, value);
            if c.writes_columns() {
                c.write_column(to + p, operands.b.col_idx.load((start + p) as usize));
            }
            p += WARP_SIZE;
        }
    }
}

/// The entry with this one product, as other kernels add it up: from 0 on, so that a product of -0.0
/// gives 0.0.
#[inline(always)]
fn multiple<T: Real>(factor: T, value: T) -> T {
    factor.mul_add(value, T::ZERO)
}

/// The columns and values that the symbolic phase has staged.
#[repr(C)]
#[derive(KernelParam)]
pub struct StagedRows<T> {
    /// Where each row starts in both arrays.
    pub starts: Global<u32>,
    /// The columns.
    pub columns: Global<u32>,
    /// The values of sorted rows; not read for rows without [`SymbolicValues`].
    pub values: Global<T>,
}

impl<T> Clone for StagedRows<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StagedRows<T> {}

/// Copies columns and values of each row that has [`SymbolicValues`] to their place in C. A warp
/// takes 16 rows, a lane every 32nd of their entries.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). `row_words` is that of
/// [`row_work`](crate::analysis::work::row_work). `staged` has columns and values of the rows in
/// `known`; rows of one nonzero of A come from B. `row_ptr` has the row pointers of C, `col_idx`
/// and `values` have room for its entries. The launch is [`launch_rows`]'s.
#[kernel(name = "spgemm_copy_rows", T = [f32, f64])]
pub unsafe fn copy_rows<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    row_words: Global<u32>,
    known: SymbolicValues,
    staged: StagedRows<T>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
    values: GlobalMut<T>,
) {
    let lane = warp::lane_id();
    let first_row = thread::index_1d() / u64::from(WARP_SIZE) * u64::from(ROWS_PER_WARP);
    let row = first_row + u64::from(lane);
    // SAFETY: `row` is below `a.rows` where it is used. A row in bin `COPY` has one nonzero of A.
    // `p` is below `total` where an entry is copied. The loop runs alike for all lanes of the warp,
    // so all reach each shuffle.
    unsafe {
        // A row per lane: its entries, where they are, and where they belong.
        let (mut count, mut from, mut to) = (0, 0, 0);
        let (mut is_from_b, mut factor) = (false, T::ONE);
        if lane < ROWS_PER_WARP && row < u64::from(operands.a.rows) {
            let row = row as usize;
            let bin = row_words.load(row) & ((1 << BIN_BITS) - 1);
            to = row_ptr.load(row);
            count = row_ptr.load(row + 1) - to;
            if !known.contains(bin, count) {
                count = 0;
            } else if bin == symbolic::COPY {
                let k = operands.a.row_ptr.load(row) as usize;
                from = operands.b.row_ptr.load(operands.a.col_idx.load(k) as usize);
                factor = factors.a.load(k);
                is_from_b = true;
            } else {
                from = staged.starts.load(row);
            }
        }
        let are_from_b = warp::ballot(FULL_MASK, is_from_b);
        let sum = inclusive_sum::<32>(FULL_MASK, count);
        let total = warp::shfl_idx(FULL_MASK, sum, WARP_SIZE - 1, WARP_SIZE);
        let (from, to) = (from.wrapping_sub(sum - count), to.wrapping_sub(sum - count));
        // The lanes' entries begin at a cache line of C: a write of 32 entries of 4 bytes then touches one line, not two,
        // as long as no rows are left out.
        let before = warp::shfl_idx(FULL_MASK, to, 0, WARP_SIZE) % WARP_SIZE;
        let mut first = 0;
        while first < total.saturating_add(before) {
            // A lane before the first entry has a number above all entries.
            let number = |u: u32| (first + u * WARP_SIZE + lane).wrapping_sub(before);
            let entries: [(u32, u32, T); UNROLL] = array::from_fn(|u| {
                let p = number(u as u32);
                let owner = owner::<32>(FULL_MASK, sum, p);
                let from = warp::shfl_idx(FULL_MASK, from, owner, WARP_SIZE).wrapping_add(p);
                let to = warp::shfl_idx(FULL_MASK, to, owner, WARP_SIZE).wrapping_add(p);
                let factor = if are_from_b == 0 {
                    T::ZERO
                } else {
                    warp::shfl_idx(FULL_MASK, factor, owner, WARP_SIZE)
                };
                if p >= total {
                    return (0, 0, T::ZERO);
                }
                if are_from_b >> owner & 1 == 1 {
                    let value = multiple(factor, factors.b.load(from as usize));
                    (to, operands.b.col_idx.load(from as usize), value)
                } else {
                    let value = staged.values.load(from as usize);
                    (to, staged.columns.load(from as usize), value)
                }
            });
            unroll!(u in 0..4 {
                if number(u as u32) < total {
                    let (to, column, value) = entries[u];
                    col_idx.store(to as usize, column);
                    values.store(to as usize, value);
                }
            });
            first += UNROLL as u32 * WARP_SIZE;
        }
    }
}

const _: () = assert!(UNROLL == 4);
