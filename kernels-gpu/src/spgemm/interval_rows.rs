//! Numeric, banded and blocked matrices: rows of B that are runs of neighbouring columns, added up in registers.
//!
//! Where every row of B is a run and the row of C spans few columns, each of these columns is a lane's: its sum stays in a
//! register, its factor in a row of B is at the distance from the run's first column, and no column is loaded. A nonzero of A
//! costs some shuffles and a load of each value of B; there is no shared memory before the sums are written, and they are
//! added up in the order of the nonzeros of A.
//!
//! A warp has four rows that follow each other in the list. Where they have the same columns in A, as in a block, what is loaded of B
//! serves for all four.

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

/// Neighbouring items of a warp, at most.
const MOST_ROWS: u32 = 4;

/// The launch of [`interval_rows`] for that many rows that span up to `span` columns.
pub fn launch<T: Real>(rows: u32, span: u32, rows_a_warp: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(WARPS * rows_a_warp), WARPS * WARP_SIZE)
        .shared_bytes(WARPS * span * size_of::<T>() as u32)
}

/// The values of rows that span up to `SPAN` columns, and whose rows of B are all runs; a warp four rows, a lane every 32nd
/// column.
///
/// # Safety
///
/// The operands are what they say; the items are such rows; `work` is `row_work`'s, `c` the product's structure, `values` its
/// values. The launch is [`launch`]'s.
#[kernel(name = "spgemm_interval_rows", T = [f32, f64], SPAN = [64, 128], ROWS = [1, 4])]
pub unsafe fn interval_rows<T: Real, const SPAN: u32, const ROWS: u32>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    work: Global<u32>,
    c: Structure,
    values: GlobalMut<T>,
) {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    let sums = shared::dynamic_shared_mem::<T>().offset((warp * SPAN) as usize);
    let rows = Rows {
        operands,
        factors,
        work,
        c,
        values,
        sums,
    };
    let first = (thread::block_idx_x() * WARPS + warp) * ROWS;
    // SAFETY: the caller's contract; each warp has sums of its own.
    unsafe {
        if SPAN == 64 {
            rows.compute::<2, ROWS>(items, first);
        } else {
            rows.compute::<4, ROWS>(items, first);
        }
    }
}

/// The matrices of a launch, and the warp's room for the sums of a row.
struct Rows<T> {
    operands: Operands,
    factors: Factors<T>,
    work: Global<u32>,
    c: Structure,
    values: GlobalMut<T>,
    sums: Shared<T>,
}

impl<T: Real> Rows<T> {
    /// The rows of the items from `first` on, together if they have the same columns in A.
    #[inline(always)]
    unsafe fn compute<const SUMS: usize, const ROWS: u32>(&self, items: Items, first: u32) {
        // SAFETY: items of the launch, rows of the matrices.
        unsafe {
            if ROWS > 1 && u64::from(first) + u64::from(ROWS) <= u64::from(items.count) {
                let rows: [u32; 4] = array::from_fn(|r| items.load(first + r as u32)[0]);
                if self.are_alike(rows) {
                    let sums = self.sums_of::<SUMS, 4>(rows);
                    unroll!(r in 0..4 {
                        self.write(rows[r], sums[r]);
                    });
                    return;
                }
            }
            let mut item = first;
            while item < items.count.min(first.saturating_add(ROWS)) {
                let [row, _] = items.load(item);
                let [sums] = self.sums_of::<SUMS, 1>([row]);
                self.write(row, sums);
                item += 1;
            }
        }
    }

    /// Whether the rows have the same columns in A.
    #[inline(always)]
    unsafe fn are_alike(&self, rows: [u32; 4]) -> bool {
        // SAFETY: rows of A and their nonzeros; all lanes of the warp take part in its votes.
        unsafe {
            let (start, end) = self.operands.a.row(rows[0]);
            let others: [(u32, u32); 4] = array::from_fn(|r| self.operands.a.row(rows[r]));
            let lengths = others.map(|(start, end)| end - start);
            if lengths != [end - start; 4] {
                return false;
            }
            let mut k = warp::lane_id();
            while k - warp::lane_id() < end - start {
                let columns: [u32; 4] = array::from_fn(|r| {
                    if k < end - start {
                        self.operands.a.col_idx.load((others[r].0 + k) as usize)
                    } else {
                        0
                    }
                });
                if !warp::all(FULL_MASK, columns == [columns[0]; 4]) {
                    return false;
                }
                k += WARP_SIZE;
            }
            true
        }
    }

    /// The sums of rows that have the same columns in A: those of the lane are 32 apart, from the first column of C's row on.
    #[inline(always)]
    unsafe fn sums_of<const SUMS: usize, const N: usize>(&self, rows: [u32; N]) -> [[T; SUMS]; N] {
        let lane = warp::lane_id();
        let Self {
            operands, factors, ..
        } = self;
        let mut sums = [[T::ZERO; SUMS]; N];
        // SAFETY: nonzeros of the rows; all lanes of the warp take part in its shuffles.
        unsafe {
            let first = self.work.load(WORK * rows[0] as usize + 1);
            let (start, end) = operands.a.row(rows[0]);
            let starts: [u32; N] = array::from_fn(|r| operands.a.row_ptr.load(rows[r] as usize));
            let mut done = 0;
            while done < end - start {
                let k = done + lane;
                // The column at distance `d` from the first is at `base + d` in B, if `d` is among the `len` from `low` on.
                let (mut base, mut interval, mut a) = (0, 0, [T::ZERO; N]);
                if k < end - start {
                    let column = operands.a.col_idx.load((start + k) as usize);
                    let [start, end, low, _] = operands.extents.load4(4 * column as usize);
                    a = array::from_fn(|r| factors.a.load((starts[r] + k) as usize));
                    if start < end {
                        let low = low - first;
                        base = start.wrapping_sub(low);
                        interval = low | (end - start) << 16;
                    }
                }
                let count = (end - start - done).min(WARP_SIZE);
                let mut owner = 0;
                while owner < count {
                    let nonzeros: [(u32, u32, [T; N]); UNROLL] = array::from_fn(|u| {
                        let owner = owner + u as u32;
                        (
                            warp::shfl_idx(FULL_MASK, base, owner, WARP_SIZE),
                            warp::shfl_idx(FULL_MASK, interval, owner, WARP_SIZE),
                            array::from_fn(|r| warp::shfl_idx(FULL_MASK, a[r], owner, WARP_SIZE)),
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
                            (is_in, factors.b.load(position as usize))
                        })
                    });
                    unroll!(u in 0..4 {
                        sums = array::from_fn(|r| {
                            array::from_fn(|s| {
                                let (is_in, b) = loaded[u][s];
                                // Not 0 times a factor that may be infinite.
                                if is_in {
                                    nonzeros[u].2[r].mul_add(b, sums[r][s])
                                } else {
                                    sums[r][s]
                                }
                            })
                        });
                    });
                    owner += UNROLL as u32;
                }
                done += WARP_SIZE;
            }
        }
        sums
    }

    /// Writes a row whose sums the lanes have.
    #[inline(always)]
    unsafe fn write<const SUMS: usize>(&self, row: u32, sums: [T; SUMS]) {
        // SAFETY: columns of the row's span; the warp's own room, synchronised between writes and reads.
        unsafe {
            let first = self.work.load(WORK * row as usize + 1);
            store(self.sums, sums);
            warp::sync_warp(FULL_MASK);
            let (start, end) = self.c.row(row);
            let columns = self.c.columns(row);
            let mut i = warp::lane_id();
            while i < end - start {
                let column = columns.load(i as usize);
                self.c.put(start + i, column);
                let sum = self.sums.load((column - first) as usize);
                self.values.store((start + i) as usize, sum);
                i += WARP_SIZE;
            }
            warp::sync_warp(FULL_MASK);
        }
    }
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
    interval_rows::<f32, 64, 1>().entry_points()
}

const _: () = assert!(UNROLL == 4 && MOST_ROWS == 4 && MOST_SPAN == 128);
