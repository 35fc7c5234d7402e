//! Numeric, for banded and blocked matrices: rows of B that are runs of neighbouring columns, added
//! up in registers.
//!
//! Every row of B is a run, and the row of C spans at most 128 columns. Each column belongs to a
//! lane, which keeps its sum in a register. The position of its factor in a row of B is known from
//! the run's first column, so no column of B is loaded. Sums are added up in the order of the
//! nonzeros of A.
//!
//! Each lane stages one of 32 nonzeros of A in shared memory: bits for the columns of C that its
//! row of B has, and where this row would start in B if it had all columns. Then all lanes go
//! through the 32 nonzeros. For each of its columns a lane tests a bit, loads the factor, and does
//! a multiply-add.
//!
//! ```text
//! columns of C   0 1 2 3 4 5        staged: bits . . 1 1 1 .
//! row of B           x y z          start = position of x minus 2
//! ```

use crate::products::bins::WORK_WORDS;
use crate::products::operands::{Factors, OperandPatterns, OutputPattern, RowList};
use crate::products::window::interval_bits;
use core::array;
use core::mem::transmute_copy;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Warps in a block, each with a row.
const WARPS: u32 = 4;

/// Maximum span of a row.
pub const MAX_SPAN: u32 = 128;

/// Columns of a lane.
const SUMS: usize = (MAX_SPAN / WARP_SIZE) as usize;

/// Maximum number of nonzeros of A of a row, unless sums must be in order: more are too many for
/// one warp.
pub const MAX_NONZEROS: u32 = 1024;

/// Nonzeros of A whose rows of B are loaded together.
const UNROLL: usize = 4;

/// Words of a staged nonzero of A: bits of the columns of C, the start of its row of B, and its
/// value.
const NONZERO_WORDS: u32 = 8;

/// Bytes of shared memory of a warp: 32 staged nonzeros of A, and in the end the sums.
const fn warp_bytes(element_bytes: u32) -> u32 {
    let sums = MAX_SPAN * element_bytes;
    let nonzeros = 4 * NONZERO_WORDS * WARP_SIZE;
    if sums > nonzeros { sums } else { nonzeros }
}

/// The launch of [`interval_rows`] for this many rows.
pub fn launch<T: Real>(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(WARPS), WARPS * WARP_SIZE)
        .shared_bytes(WARPS * warp_bytes(size_of::<T>() as u32))
}

/// The values of each listed row. A warp takes a row, a lane every 32nd column of its span. A
/// product costs a value of B.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The listed rows span at most [`MAX_SPAN`] columns, and
/// all their rows of B are runs of neighbouring columns. `work` is that of
/// [`row_work`](crate::analysis::work::row_work). `c` is the pattern of their product (see
/// [`OutputPattern`]), and `values` has room for its entries. The launch is [`launch`]'s.
#[kernel(name = "spgemm_interval_rows", T = [f32, f64])]
pub unsafe fn interval_rows<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    work: Global<u32>,
    c: OutputPattern,
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
    // SAFETY: `item` is below `items.count`, checked above. A column of the row is less than
    // `MAX_SPAN` from its first one. Each warp has its own part of shared memory, and synchronises between
    // writes and reads.
    unsafe {
        let [row, _] = items.load(item);
        let first = work.load(WORK_WORDS * row as usize + 1);
        let of_lane = sums_of::<T, SUMS>(&operands, factors, row, first, nonzeros);
        store(sums, of_lane);
        warp::sync_warp(FULL_MASK);
        let (start, end) = c.row(row);
        let columns = c.columns(row);
        let mut i = warp::lane_id();
        while i < end - start {
            let column = columns.load(i as usize);
            c.write_column(start + i, column);
            values.store((start + i) as usize, sums.load((column - first) as usize));
            i += WARP_SIZE;
        }
    }
}

/// The sums of the row's columns from `first` on; the lane has every 32nd column.
///
/// # Safety
///
/// As for [`interval_rows`]; `nonzeros` has room for 32 staged nonzeros of A, of this warp alone.
#[inline(always)]
unsafe fn sums_of<T: Real, const SUMS: usize>(
    operands: &OperandPatterns,
    factors: Factors<T>,
    row: u32,
    first: u32,
    nonzeros: Shared<u32>,
) -> [T; SUMS] {
    let lane = warp::lane_id();
    let span = SUMS as u32 * WARP_SIZE;
    let mut sums = [T::ZERO; SUMS];
    // A row of B that had all columns could start before B. Moved by `span`, its start is never
    // negative.
    let lanes_b = factors.b.offset_bytes(
        (u64::from(lane) * size_of::<T>() as u64)
            .wrapping_sub(u64::from(span) * size_of::<T>() as u64),
    );
    // SAFETY: `k + lane` is below `end`, checked. A value of B is loaded only if its bit is set, so
    // the row of B has it. The warp synchronises between writes and reads of its staged nonzeros.
    unsafe {
        let (mut k, end) = operands.a.row(row);
        while k < end {
            let mut nonzero = StagedNonzero::<T, SUMS> {
                columns: [0; SUMS],
                start: 0,
                value: T::ZERO,
            };
            if k + lane < end {
                let column = operands.a.col_idx.load((k + lane) as usize);
                let [start, end, low, high] = operands.extents.load4(4 * column as usize);
                nonzero.value = factors.a.load((k + lane) as usize);
                if start < end {
                    nonzero.columns = array::from_fn(|s| {
                        interval_bits((low - first, high - first), s as u32 * WARP_SIZE)
                    });
                    nonzero.start = span + start - (low - first);
                }
            }
            nonzero.store(nonzeros, lane);
            warp::sync_warp(FULL_MASK);
            let count = (end - k).min(WARP_SIZE);
            let mut owner = 0;
            while owner < count {
                // Staged nonzeros past the last one have no columns.
                let some: [StagedNonzero<T, SUMS>; UNROLL] =
                    array::from_fn(|u| StagedNonzero::load(nonzeros, owner + u as u32));
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
                        // Skipped, not multiplied by 0: the factor may be infinite.
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

/// A nonzero of A, as it is staged.
#[derive(Clone, Copy)]
struct StagedNonzero<T, const SUMS: usize> {
    /// The columns of C that its row of B has, as bits.
    columns: [u32; SUMS],
    /// Where that row would start in B if it had all of them, plus the span.
    start: u32,
    /// Its value.
    value: T,
}

impl<T: Real, const SUMS: usize> StagedNonzero<T, SUMS> {
    /// Whether its row of B has the lane's column number `s`.
    #[inline(always)]
    fn has(&self, s: usize, lane: u32) -> bool {
        self.columns[s] & 1 << lane != 0
    }

    /// Whether it fits one 16-byte vector.
    const IS_SHORT: bool = SUMS == 2 && size_of::<T>() == 4;

    /// Stores it as staged nonzero `number`.
    ///
    /// # Safety
    ///
    /// `to` has room for [`NONZERO_WORDS`] words of it, aligned to 16 bytes.
    #[inline(always)]
    unsafe fn store(&self, to: Shared<u32>, number: u32) {
        let to = to.offset((number * NONZERO_WORDS) as usize);
        // SAFETY: the room and its alignment are part of the contract.
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

    /// Loads staged nonzero `number`.
    ///
    /// # Safety
    ///
    /// It has been stored, and the warp has synchronised.
    #[inline(always)]
    unsafe fn load(from: Shared<u32>, number: u32) -> Self {
        let from = from.offset((number * NONZERO_WORDS) as usize);
        // SAFETY: it has been stored, by the contract; one vector means that the value has four
        // bytes.
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

/// Writes the lane's sums to shared memory, each at its column's distance from the first.
///
/// # Safety
///
/// `to` has room for `32 * SUMS` sums.
#[inline(always)]
unsafe fn store<T: Real, const SUMS: usize>(to: Shared<T>, sums: [T; SUMS]) {
    #[allow(
        clippy::needless_range_loop,
        reason = "an iterator over the array is not unrolled, and puts it into local memory"
    )]
    for s in 0..SUMS {
        // SAFETY: the index is below `32 * SUMS`.
        unsafe { to.store(s * WARP_SIZE as usize + warp::lane_id() as usize, sums[s]) };
    }
}

const _: () = assert!(UNROLL == 4 && MAX_SPAN == 128);
