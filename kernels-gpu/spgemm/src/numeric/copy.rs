//! TileRows of C brought to their places: from where they were put aside, or, of one nonzero of A, from the row of B.
//!
//! The structure alone comes by tiles: a block takes 2048 entries of C that follow each other, whatever their rows, so that all
//! lanes have the same work and what is written is one piece; it looks up the rows' ends in shared memory. Short rows that have
//! their values are a warp's 16 at a time, their entries numbered through: with a group of lanes for each, those of short
//! rows waited for those of longer ones.
//!
//! On an H200, R-MAT .35 with 1,138,499 rows: the whole multiplication takes 1.16 ms so, with [`place`](crate::analysis::row_lists) as it is, and took 1.36
//! with groups of lanes and a list's place asked for row by row.

use crate::products::bins::{BIN_BITS, SymbolicValues, symbolic};
use crate::products::lanes::{inclusive_sum, owner};
use crate::products::operands::{Factors, OperandPatterns, OutputPattern, RowList};
use crate::products::team::Team;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Entries of a thread whose loads are in flight together.
const UNROLL: usize = 4;

/// TileRows of a warp of [`copy_rows`].
const ROWS_PER_WARP: u32 = 16;

/// Entries of a row of one nonzero of A that a warp of [`copy_products`] takes.
pub const CHUNK: u32 = 1024;

/// The launch of [`copy_rows`] for that many rows.
pub fn launch_rows(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE * ROWS_PER_WARP), BLOCK)
}

/// The launch of [`copy_products`] for that many chunks of rows, a warp each.
pub fn launch_products(chunks: u32) -> LaunchConfig {
    LaunchConfig::new(chunks.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// The values of rows of one nonzero of A: those of the row of B, multiplied; and their columns, if they are wanted. A warp
/// [`CHUNK`] entries.
///
/// # Safety
///
/// The operands are what they say; the items are chunks of rows with one nonzero in A; `c` is the product's structure, `values`
/// its values.
#[kernel(name = "spgemm_copy_products", T = [f32, f64])]
pub unsafe fn copy_products<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    c: OutputPattern,
    values: GlobalMut<T>,
) {
    let team = Team::<false>;
    if team.index() >= items.count {
        return;
    }
    // SAFETY: rows of the matrices.
    unsafe {
        let [row, chunk] = items.load(team.index());
        let k = operands.a.row_ptr.load(row as usize) as usize;
        let factor = factors.a.load(k);
        let [start, end] = operands
            .extents
            .load2(4 * operands.a.col_idx.load(k) as usize);
        let to = c.row_ptr.load(row as usize);
        let first = chunk * CHUNK;
        let end_of_chunk = first + (end - start - first).min(CHUNK);
        let mut p = first + team.thread();
        while p < end_of_chunk {
            let value = factor * factors.b.load((start + p) as usize);
            values.store((to + p) as usize, value);
            if c.writes_columns() {
                c.write_column(to + p, operands.b.col_idx.load((start + p) as usize));
            }
            p += WARP_SIZE;
        }
    }
}

/// What has been put aside: each row from its start on.
#[repr(C)]
pub struct StagedRows<T> {
    /// Where each row starts.
    pub starts: Global<u32>,
    /// The columns.
    pub columns: Global<u32>,
    /// The values of sorted rows; not read if they are not known.
    pub values: Global<T>,
}

impl<T> Clone for StagedRows<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StagedRows<T> {}

// SAFETY: `repr(C)`, of device pointers.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl<T: Element> KernelParam for StagedRows<T> {}

/// Columns and values of the rows whose values are known to their places in C; a warp 16 rows, whose entries are numbered
/// through.
///
/// # Safety
///
/// The operands are what they say; `row_words` is `row_work`'s, `aside` has columns and values of the rows that are known but
/// those of one nonzero of A, `row_ptr` says where they belong in `col_idx` and `values`. The launch is [`launch_rows`]'s.
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
    // SAFETY: rows of C and their entries; if a row's bin says so, with one nonzero in A; all lanes of the warp are here.
    unsafe {
        // A row of the lane: its entries, where they are and where they belong.
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
        let mut first = 0;
        while first < total {
            let entries: [(u32, u32, T); UNROLL] = array::from_fn(|u| {
                let p = first + u as u32 * WARP_SIZE + lane;
                let owner = owner::<32>(FULL_MASK, sum, p);
                let from = warp::shfl_idx(FULL_MASK, from, owner, WARP_SIZE).wrapping_add(p);
                let to = warp::shfl_idx(FULL_MASK, to, owner, WARP_SIZE).wrapping_add(p);
                let factor = if are_from_b == 0 {
                    T::ONE
                } else {
                    warp::shfl_idx(FULL_MASK, factor, owner, WARP_SIZE)
                };
                if p >= total {
                    return (0, 0, T::ZERO);
                }
                let (columns, from_values) = if are_from_b >> owner & 1 == 1 {
                    (operands.b.col_idx, factors.b)
                } else {
                    (staged.columns, staged.values)
                };
                let value = factor * from_values.load(from as usize);
                (to, columns.load(from as usize), value)
            });
            unroll!(u in 0..4 {
                if first + u as u32 * WARP_SIZE + lane < total {
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
