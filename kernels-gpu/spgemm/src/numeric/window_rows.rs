//! Numeric, for banded and blocked matrices: a window of accumulators, one for each column from a
//! row's first to its last.
//!
//! A column's accumulator is at its distance from the first column: no table and no search. The
//! warp takes the row's nonzeros of A one after the other. No two lanes meet in an accumulator, so
//! there are no atomics, and sums have a fixed order. A product costs its column and value of B.

use crate::products::bins::WORK_WORDS;
use crate::products::operands::{Factors, OperandPatterns, OutputPattern, RowList};
use crate::products::row_products::RowProducts;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Warps in a block, each with a row.
const WARPS: u32 = 2;

/// Columns of C per lane whose loads are in flight together.
const UNROLL: usize = 4;

/// The launch for this many rows with windows of `window` accumulators of `element_bytes` bytes.
pub fn launch(rows: u32, window: u32, element_bytes: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(WARPS), WARPS * WARP_SIZE)
        .shared_bytes(WARPS * window * element_bytes)
}

/// The values of each listed row. A warp takes a row, a lane every 32nd nonzero of each row of B.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The listed rows span at most `window` columns.
/// `work` is that of [`row_work`](crate::analysis::work::row_work). `c` is the pattern of their
/// product (see [`OutputPattern`]), and `values` has room for its entries. The launch is
/// [`launch`]'s.
#[kernel(name = "spgemm_window_rows", T = [f32, f64])]
pub unsafe fn window_rows<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    window: u32,
    work: Global<u32>,
    c: OutputPattern,
    values: GlobalMut<T>,
) {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    let item = thread::block_idx_x() * WARPS + warp;
    if item >= items.count {
        return;
    }
    let sums = shared::dynamic_shared_mem::<T>().offset((warp * window) as usize);
    // SAFETY: `item` is below `items.count`, checked above. A column of the row is less than
    // `window` from its first one. Each warp has its own accumulators, and synchronises between
    // nonzeros of A.
    unsafe {
        let [row, _] = items.load(item);
        let first = work.load(WORK_WORDS * row as usize + 1);
        let (start, end) = c.row(row);
        let columns = c.columns(row);
        for_each_column(columns, end - start, |i, column| {
            c.write_column(start + i, column);
            sums.store((column - first) as usize, T::ZERO);
        });
        warp::sync_warp(FULL_MASK);
        let row_products = RowProducts {
            operands: &operands,
            factors,
            nonzeros: operands.a.row(row),
            products: 0,
            warp: 0,
            warps: 1,
            window: None,
            long_rows: None,
        };
        row_products.for_each_in_order(|column, a, b| {
            let position = (column - first) as usize;
            sums.store(position, a.mul_add(b, sums.load(position)));
        });
        for_each_column(columns, end - start, |i, column| {
            values.store((start + i) as usize, sums.load((column - first) as usize));
        });
    }
}

/// Calls `each(i, columns[i])` for the calling lane's share of `count` columns: every 32nd.
///
/// # Safety
///
/// `columns` has `count` columns, at least one.
#[inline(always)]
unsafe fn for_each_column(columns: Global<u32>, count: u32, mut each: impl FnMut(u32, u32)) {
    let mut i = warp::lane_id();
    while i < count {
        // SAFETY: a column past the last one is the last one again.
        let some: [u32; UNROLL] = array::from_fn(|u| unsafe {
            columns.load((i + u as u32 * WARP_SIZE).min(count - 1) as usize)
        });
        unroll!(u in 0..4 {
            let at = i + u as u32 * WARP_SIZE;
            if at < count {
                each(at, some[u]);
            }
        });
        i += UNROLL as u32 * WARP_SIZE;
    }
}

const _: () = assert!(UNROLL == 4);
