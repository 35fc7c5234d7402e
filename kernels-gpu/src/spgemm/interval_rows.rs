//! Numeric, banded and blocked matrices: rows of B that are runs of neighbouring columns, added up in registers.
//!
//! Where every row of B is a run and the row of C spans few columns, each of these columns is a lane's: its sum stays in a
//! register, its factor in a row of B is at the distance from the run's first column, and no column is loaded. A nonzero of A
//! costs some shuffles and a load of each value of B; there is no shared memory before the sums are written, and they are
//! added up in the order of the nonzeros of A.

use super::operands::{Factors, Items, Operands, Structure};
use super::work::WORK;
use crate::unroll::unroll;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Warps, and so rows, in a block.
const WARPS: u32 = 4;

/// Columns that a row may span, at most.
pub const MOST_SPAN: u32 = 128;

/// Nonzeros of A of a row, at most, unless sums must be added up in their order: more are too many for a warp.
pub const MOST_NONZEROS: u32 = 1024;

/// Nonzeros of A whose rows of B are loaded together.
const UNROLL: usize = 4;

/// The launch of [`interval_rows`] for that many rows that span up to `span` columns.
pub fn launch<T: Real>(rows: u32, span: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(WARPS), WARPS * WARP_SIZE)
        .shared_bytes(WARPS * span * size_of::<T>() as u32)
}

/// The values of rows that span up to `SPAN` columns, and whose rows of B are all runs; a warp a row, a lane every 32nd column.
///
/// # Safety
///
/// The operands are what they say; the items are such rows; `work` is `row_work`'s, `c` the product's structure, `values` its
/// values. The launch is [`launch`]'s.
#[kernel(name = "spgemm_interval_rows", T = [f32, f64], SPAN = [64, 128])]
pub unsafe fn interval_rows<T: Real, const SPAN: u32>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    work: Global<u32>,
    c: Structure,
    values: GlobalMut<T>,
) {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    let item = thread::block_idx_x() * WARPS + warp;
    if item >= items.count {
        return;
    }
    let sums = shared::dynamic_shared_mem::<T>().offset((warp * SPAN) as usize);
    // SAFETY: rows of the matrices, columns of the row's span; the warp's own sums, synchronised between writes and reads.
    unsafe {
        let [row, _] = items.load(item);
        let first = work.load(WORK * row as usize + 1);
        if SPAN == 64 {
            store::<T, 2>(sums, sums_of::<T, 2>(&operands, factors, row, first));
        } else {
            store::<T, 4>(sums, sums_of::<T, 4>(&operands, factors, row, first));
        }
        warp::sync_warp(FULL_MASK);
        let (start, end) = c.row(row);
        let columns = c.columns(row);
        let mut i = warp::lane_id();
        while i < end - start {
            let column = columns.load(i as usize);
            c.put(start + i, column);
            values.store((start + i) as usize, sums.load((column - first) as usize));
            i += WARP_SIZE;
        }
    }
}

/// The sums of a row's columns from `first` on: those of the lane are 32 apart.
#[inline(always)]
unsafe fn sums_of<T: Real, const SUMS: usize>(
    operands: &Operands,
    factors: Factors<T>,
    row: u32,
    first: u32,
) -> [T; SUMS] {
    let lane = warp::lane_id();
    let mut sums = [T::ZERO; SUMS];
    // SAFETY: nonzeros of the row; all lanes of the warp take part in its shuffles.
    unsafe {
        let (mut k, end) = operands.a.row(row);
        while k < end {
            // The column at distance `d` from the first is at `base + d` in B, if `d` is among the `len` from `low` on.
            let (mut base, mut interval, mut a) = (0, 0, T::ZERO);
            if k + lane < end {
                let column = operands.a.col_idx.load((k + lane) as usize);
                let [start, end, low, _] = operands.extents.load4(4 * column as usize);
                a = factors.a.load((k + lane) as usize);
                if start < end {
                    let low = low - first;
                    base = start.wrapping_sub(low);
                    interval = low | (end - start) << 16;
                }
            }
            let count = (end - k).min(WARP_SIZE);
            let mut owner = 0;
            while owner < count {
                let nonzeros: [(u32, u32, T); UNROLL] = array::from_fn(|u| {
                    let owner = owner + u as u32;
                    (
                        warp::shfl_idx(FULL_MASK, base, owner, WARP_SIZE),
                        warp::shfl_idx(FULL_MASK, interval, owner, WARP_SIZE),
                        warp::shfl_idx(FULL_MASK, a, owner, WARP_SIZE),
                    )
                });
                let loaded: [[(bool, T); SUMS]; UNROLL] = array::from_fn(|u| {
                    let (base, interval, _) = nonzeros[u];
                    array::from_fn(|s| {
                        let distance = s as u32 * WARP_SIZE + lane;
                        let is_in = distance.wrapping_sub(interval & 0xffff) < interval >> 16;
                        // Elsewhere any nonzero of B: a load that depends on nothing is fewer instructions.
                        let position = if is_in {
                            base.wrapping_add(distance)
                        } else {
                            0
                        };
                        let b = factors.b.load(position as usize);
                        (is_in, b)
                    })
                });
                unroll!(u in 0..4 {
                    sums = array::from_fn(|s| {
                        let (is_in, b) = loaded[u][s];
                        // Not 0 times a factor that may be infinite.
                        if is_in {
                            nonzeros[u].2.mul_add(b, sums[s])
                        } else {
                            sums[s]
                        }
                    });
                });
                owner += UNROLL as u32;
            }
            k += WARP_SIZE;
        }
    }
    sums
}

/// Puts the lane's sums where their columns are.
#[inline(always)]
unsafe fn store<T: Real, const SUMS: usize>(to: Shared<T>, sums: [T; SUMS]) {
    #[allow(
        clippy::needless_range_loop,
        reason = "an iterator over the array is not unrolled, and puts it into local memory"
    )]
    for s in 0..SUMS {
        // SAFETY: a sum for each column.
        unsafe { to.store(s * WARP_SIZE as usize + warp::lane_id() as usize, sums[s]) };
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> &'static [&'static str] {
    interval_rows::<f32, 64>().entry_points()
}

const _: () = assert!(UNROLL == 4 && MOST_SPAN == 128);
