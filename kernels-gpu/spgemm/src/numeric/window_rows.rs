//! Numeric, banded and blocked matrices: a window of accumulators over all columns from a row's first to its last.
//!
//! A column's accumulator is at its distance from the first one: no table and no search. A warp takes the row's nonzeros of
//! A one after the other, so that no two lanes meet in an accumulator: no atomics, and sums in the same order always.

use crate::products::bins::WORK;
use crate::products::operands::{Factors, Items, Operands, Structure};
use crate::products::walk::Walk;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Warps, and so rows, in a block.
const WARPS: u32 = 4;

/// The launch for that many rows whose windows have `window` accumulators of `element_bytes` bytes.
pub fn launch(rows: u32, window: u32, element_bytes: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(WARPS), WARPS * WARP_SIZE)
        .shared_bytes(WARPS * window * element_bytes)
}

/// The values of rows whose columns span up to `window` columns; a warp a row.
///
/// # Safety
///
/// The operands are what they say; `work` is `row_work`'s, `c` the product's structure, `values` its values. The launch is
/// [`launch`]'s.
#[kernel(name = "spgemm_window_rows", T = [f32, f64])]
pub unsafe fn window_rows<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    window: u32,
    work: Global<u32>,
    c: Structure,
    values: GlobalMut<T>,
) {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    let item = thread::block_idx_x() * WARPS + warp;
    if item >= items.count {
        return;
    }
    let lane = warp::lane_id();
    let sums = shared::dynamic_shared_mem::<T>().offset((warp * window) as usize);
    // SAFETY: rows of the matrices, columns of the row's span; the warp's own accumulators, synchronised between nonzeros.
    unsafe {
        let [row, _] = items.load(item);
        let first = work.load(WORK * row as usize + 1);
        let (start, end) = c.row(row);
        let columns = c.columns(row);
        let mut i = lane;
        while i < end - start {
            let column = columns.load(i as usize);
            c.put(start + i, column);
            sums.store((column - first) as usize, T::ZERO);
            i += WARP_SIZE;
        }
        warp::sync_warp(FULL_MASK);
        let walk = Walk {
            operands: &operands,
            factors,
            nonzeros: operands.a.row(row),
            products: 0,
            warp: 0,
            warps: 1,
            window: None,
            list: None,
        };
        walk.each_in_order(|column, a, b| {
            let place = (column - first) as usize;
            sums.store(place, a.mul_add(b, sums.load(place)));
        });
        let mut i = lane;
        while i < end - start {
            let column = columns.load(i as usize);
            values.store((start + i) as usize, sums.load((column - first) as usize));
            i += WARP_SIZE;
        }
    }
}
