//! Numeric, banded and blocked matrices: rows of B that are runs of neighbouring columns, added up in registers.
//!
//! Where every row of B is a run and the row of C spans few columns, each of these columns is a lane's: its sum stays in a
//! register, its factor in a row of B is at the distance from the run's first column, and no column is loaded. The sums are
//! added up in the order of the nonzeros of A.
//!
//! Of 32 nonzeros of A at a time each lane finds out which columns of C one of them has, as bits, and where its row of B would start if
//! it had all; for every lane that is one load from shared memory, one address, and of each column a test, a load and an
//! addition. Rows of A that are runs as well are those of [`neighbour_rows`](mod@crate::numeric::neighbour_rows), if there are many.
//!
//! On an H200 the phase takes 0.72 ms for a million rows of 27 neighbouring columns, 2.0 TFLOP/s, and 1.21 ms for blocks of 64 x 64, 4.3 TFLOP/s; where each lane
//! looked at the bounds of every nonzero's run, 1.20 and 1.69 ms. That is near what L1 gives: its pipe for loads is busy 88 % and 70 % of
//! the time, the issue slots 83 % and 68 %. It is not the L2: sixteen rows a block, which ask it for half as many bytes, took 0.79 and 1.32 ms.

use crate::products::bins::WORK;
use crate::products::operands::{Factors, Items, Operands, Structure};
use crate::products::window::bits;
use core::array;
use core::mem::transmute_copy;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Warps, and so rows, in a block.
const WARPS: u32 = 4;

/// Columns that a row may span, at most.
pub const MOST_SPAN: u32 = 128;

/// Columns of a lane.
const SUMS: usize = (MOST_SPAN / WARP_SIZE) as usize;

/// Nonzeros of A of a row, at most, unless sums must be added up in their order: more are too many for a warp.
pub const MOST_NONZEROS: u32 = 1024;

/// Nonzeros of A whose rows of B are loaded together.
const UNROLL: usize = 4;

/// Words of what is known of a nonzero of A: bits of the columns of C, the start of its row of B, and its value.
const NONZERO_WORDS: u32 = 8;

/// Bytes of shared memory of a warp: the sums at last, and before them 32 nonzeros of A.
const fn warp_bytes(element_bytes: u32) -> u32 {
    let sums = MOST_SPAN * element_bytes;
    let nonzeros = 4 * NONZERO_WORDS * WARP_SIZE;
    if sums > nonzeros { sums } else { nonzeros }
}

/// The launch of [`interval_rows`] for that many rows.
pub fn launch<T: Real>(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(WARPS), WARPS * WARP_SIZE)
        .shared_bytes(WARPS * warp_bytes(size_of::<T>() as u32))
}

/// The values of rows that span up to [`MOST_SPAN`] columns, and whose rows of B are all runs; a warp a row, a lane every 32nd
/// column.
///
/// # Safety
///
/// The operands are what they say; the items are such rows; `work` is `row_work`'s, `c` the product's structure, `values` its
/// values. The launch is [`launch`]'s.
#[kernel(name = "spgemm_interval_rows", T = [f32, f64])]
pub unsafe fn interval_rows<T: Real>(
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
    let shared = shared::dynamic_shared_mem::<u8>()
        .offset((warp * warp_bytes(size_of::<T>() as u32)) as usize);
    let (sums, nonzeros) = (shared.cast::<T>(), shared.cast::<u32>());
    // SAFETY: rows of the matrices, columns of the row's span; the warp's own sums, synchronised between writes and reads.
    unsafe {
        let [row, _] = items.load(item);
        let first = work.load(WORK * row as usize + 1);
        let of_lane = sums_of::<T, SUMS>(&operands, factors, row, first, nonzeros);
        store(sums, of_lane);
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

/// The sums of a row's columns from `first` on: those of the lane are 32 apart. The warp has room for 32 nonzeros.
#[inline(always)]
unsafe fn sums_of<T: Real, const SUMS: usize>(
    operands: &Operands,
    factors: Factors<T>,
    row: u32,
    first: u32,
    nonzeros: Shared<u32>,
) -> [T; SUMS] {
    let lane = warp::lane_id();
    let span = SUMS as u32 * WARP_SIZE;
    let mut sums = [T::ZERO; SUMS];
    // What is `span` further on than a row of B would start is in no case before B.
    let lanes_b = factors.b.offset_bytes(
        (u64::from(lane) * size_of::<T>() as u64)
            .wrapping_sub(u64::from(span) * size_of::<T>() as u64),
    );
    // SAFETY: nonzeros of the row, the warp's own room, synchronised between writes and reads.
    unsafe {
        let (mut k, end) = operands.a.row(row);
        while k < end {
            let mut nonzero = Nonzero::<T, SUMS> {
                columns: [0; SUMS],
                start: 0,
                value: T::ZERO,
            };
            if k + lane < end {
                let column = operands.a.col_idx.load((k + lane) as usize);
                let [start, end, low, high] = operands.extents.load4(4 * column as usize);
                nonzero.value = factors.a.load((k + lane) as usize);
                if start < end {
                    nonzero.columns =
                        array::from_fn(|s| bits((low - first, high - first), s as u32 * WARP_SIZE));
                    nonzero.start = span + start - (low - first);
                }
            }
            nonzero.store(nonzeros, lane);
            warp::sync_warp(FULL_MASK);
            let count = (end - k).min(WARP_SIZE);
            let mut owner = 0;
            while owner < count {
                // Past the last one are nonzeros without columns.
                let some: [Nonzero<T, SUMS>; UNROLL] =
                    array::from_fn(|u| Nonzero::load(nonzeros, owner + u as u32));
                let loaded: [[T; SUMS]; UNROLL] = array::from_fn(|u| {
                    let b = lanes_b.offset(some[u].start as usize);
                    array::from_fn(|s| {
                        if some[u].has(s, lane) {
                            b.load(s * WARP_SIZE as usize)
                        } else {
                            T::ZERO
                        }
                    })
                });
                unroll!(u in 0..4 {
                    sums = array::from_fn(|s| {
                        // Not 0 times a factor that may be infinite.
                        if some[u].has(s, lane) {
                            some[u].value.mul_add(loaded[u][s], sums[s])
                        } else {
                            sums[s]
                        }
                    });
                });
                owner += UNROLL as u32;
            }
            warp::sync_warp(FULL_MASK);
            k += WARP_SIZE;
        }
    }
    sums
}

/// A nonzero of A.
#[derive(Clone, Copy)]
struct Nonzero<T, const SUMS: usize> {
    /// The columns of C that its row of B has.
    columns: [u32; SUMS],
    /// Where that row would start in B if it had all of them, and the row's span more.
    start: u32,
    /// Its value.
    value: T,
}

impl<T: Real, const SUMS: usize> Nonzero<T, SUMS> {
    /// Whether its row of B has the lane's column number `s`.
    #[inline(always)]
    fn has(&self, s: usize, lane: u32) -> bool {
        self.columns[s] & 1 << lane != 0
    }

    /// Whether all of it is one vector.
    const IS_SHORT: bool = SUMS == 2 && size_of::<T>() == 4;

    /// Stores it as number `number`.
    #[inline(always)]
    unsafe fn store(&self, to: Shared<u32>, number: u32) {
        let to = to.offset((number * NONZERO_WORDS) as usize);
        // SAFETY: the caller has the room, aligned as vectors want.
        unsafe {
            if Self::IS_SHORT {
                let value = transmute_copy(&self.value);
                to.store4(0, [self.columns[0], self.columns[1], self.start, value]);
            } else {
                to.store4(0, array::from_fn(|s| self.columns[s % SUMS]));
                to.store(4, self.start);
                to.offset(6).cast::<T>().store(0, self.value);
            }
        }
    }

    /// Loads number `number`.
    #[inline(always)]
    unsafe fn load(from: Shared<u32>, number: u32) -> Self {
        let from = from.offset((number * NONZERO_WORDS) as usize);
        // SAFETY: it has been stored; where all is one vector, the value has four bytes.
        unsafe {
            let words = from.load4(0);
            let columns = array::from_fn(|s| words[s % 4]);
            if Self::IS_SHORT {
                return Self {
                    columns,
                    start: words[2],
                    value: transmute_copy(&words[3]),
                };
            }
            Self {
                columns,
                start: from.load(4),
                value: from.offset(6).cast::<T>().load(0),
            }
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

const _: () = assert!(UNROLL == 4 && MOST_SPAN == 128);
