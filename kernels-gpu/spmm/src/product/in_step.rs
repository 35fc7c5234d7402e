//! One warp computes a row, and the rows of a block advance through the columns together (*in step*), so that they
//! share rows of X in the L1 cache.
//!
//! Changes from `vector`: there, tasks split a row of 500 nonzeros into eight parts, which run at the same time on
//! distant ranges of columns. Here one warp computes a whole row, and the four rows of a block start at their first
//! columns together. If columns are sorted and a row has a tenth of them, all warps of a multiprocessor are in the same
//! few hundred columns at any time. A row of X that one warp has loaded is then in the L1 cache for the others.
//!
//! No partial sums are left to add, except for rows that several warps of a block compute. These are rows much longer
//! than the others, and a few rows that fill the device (see [`teams`](crate::product::teams)).
//!
//! A nonzero costs a warp its column (4 B), its value, and a tile's elements of X, most of them from the L1 cache.
//!
//! When to use it: for rows of hundreds of nonzeros, or for a few thousand rows, which all have a warp at the same
//! time. A row of three nonzeros leaves most of a warp idle, and a row of a million keeps four warps busy after all
//! others have ended. `docs/notes/spmm.md` has measurements, and tells what was tried.

mod loads;

use loads::MIN_LANES;
pub use loads::{Loads, lane_counts, loads};

use crate::product::lane_columns::LaneColumns;
use crate::product::reduction::{Reducer, Reduction, Total};
use crate::product::row_epilogue::{LaneOutput, Results, RowEpilogue};
use crate::product::scaling::Scaling;
use crate::product::teams::{WARPS, row_of_warp};
use crate::{EpilogueKind, ItemKind, Items, LaunchShape, MAX_GRID_Y};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

/// What it does, in one line.
pub const SUMMARY: &str =
    "one warp a row with 16-byte loads, a block's rows in step through the columns that they share";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::Vector);

/// It wants teams of warps.
pub const ITEMS: ItemKind = ItemKind::Teams;

/// It takes sums and means only: no measured case needs maxima of it, which `vector` takes too.
pub const HAS_EXTREMA: bool = false;

/// Threads in a block.
const BLOCK: u32 = WARPS * WARP_SIZE;

/// Loads of X that a lane has in flight.
const UNROLL: usize = 8;

/// A warp for each row, or for a half or a fourth of it, and each tile of features; warps along x, tiles along y.
pub fn launch<T: Operand>(shape: LaunchShape, _: Reduction, _: EpilogueKind) -> LaunchConfig {
    let tile_width = loads::<T>(shape).tile_width();
    let tiles = shape.features.div_ceil(tile_width).min(MAX_GRID_Y);
    let part_bytes = WARPS * tile_width * size_of::<T::Sum>() as u32;
    LaunchConfig::new((shape.items.div_ceil(WARPS), tiles), BLOCK).shared_bytes(part_bytes)
}

/// The handle of the kernel for the shape's variant.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Operand>(
    shape: LaunchShape,
    _: Reduction,
    _: EpilogueKind,
) -> Kernel<crate::GeneralArguments<T>> {
    let Loads { lanes, width, .. } = loads::<T>(shape);
    match (lanes, width) {
        (_, 1) => in_step::<T, 16, 1, 3>(),
        (_, 2) => in_step::<T, 32, 2, 1>(),
        (_, 8) => in_step::<T, 8, 8, 1>(),
        (MIN_LANES, _) => in_step::<T, 4, 4, 1>(),
        (8, _) => in_step::<T, 8, 4, 1>(),
        (16, _) => in_step::<T, 16, 4, 1>(),
        (_, _) => in_step::<T, 32, 4, 1>(),
    }
}

/// `Y[row, j] = alpha * sum of A[row, col] * X[col, j] + beta * Y[row, j]`, a warp for a row and a tile of features;
/// several warps for a row with a team.
///
/// A nonzero costs a warp its column (4 B), its value, and a tile's elements of X, which `LANES` lanes load.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1
/// and a multiple of `WIDTH`, as are the strides and the places where X and Y start; strides are below 4 GiB; X and Y
/// are apart from each other; `items` are teams, whose count is a multiple of [`WARPS`]; y holds numbers if beta is
/// not 0.
#[kernel(
    name = "spmm_in_step",
    T = [f32, f64, f16, bf16], LANES = [16], WIDTH = [1], PASSES = [3];
    T = [f32], LANES = [32], WIDTH = [2], PASSES = [1];
    T = [f32], LANES = [4, 8], WIDTH = [4], PASSES = [1];
    T = [f32], LANES = [16, 32], WIDTH = [4], PASSES = [1], registers_sm90 = 64;
    T = [f64, f16, bf16], LANES = [8], WIDTH = [4], PASSES = [1];
    T = [f16, bf16], LANES = [8], WIDTH = [8], PASSES = [1]
)]
pub unsafe fn in_step<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    scaling: Scaling<SumOf<T>>,
) {
    let warp = thread::block_idx_x() * WARPS + warp_in_block();
    if warp >= items.count {
        // Never: the count is a multiple of `WARPS`, and the grid has no more blocks.
        return;
    }
    let tile_width = LANES * (WIDTH * PASSES) as u32;
    // SAFETY: the items' rows are rows of A, whose columns are rows of X; only this warp, or the first of a team,
    // writes the row of Y; the teams of a block have the same size, so all its threads reach the same barriers.
    unsafe {
        let (row, team) = row_of_warp(&items, warp);
        let start = a.row_ptr.load(row as usize);
        let end = a.row_ptr.load(row as usize + 1);
        let mut first_feature = thread::block_idx_y() * tile_width;
        // A row has fewer than 2^32 bytes, so the next tile's first feature is a u32.
        while first_feature < x.cols {
            let (start, end) = (thread::opaque(start), thread::opaque(end));
            let feature = lane_feature::<LANES, WIDTH>(first_feature);
            let mut row_sum = RowSum::<T, LANES, WIDTH, PASSES>::new(&x, feature as usize);
            row_sum.add_nonzeros(&a, start, end, warp_in_team(team), team);
            row_sum.join_sub_warps();
            let mut results = row_sum.accumulators;
            let (warp_in_block, row) = (warp_in_block(), thread::opaque(row) as usize);
            if team > 1 {
                join_warps::<T, LANES, WIDTH, PASSES>(&mut results, warp_in_block, team);
            }
            if lane() < LANES && warp_in_team(team) == 0 {
                let output = LaneOutput {
                    row,
                    y: &y,
                    items: &items,
                    row_of_y: None,
                    feature: lane_feature::<LANES, WIDTH>(first_feature),
                    features: x.cols,
                };
                RowEpilogue::<T>::write::<LANES, WIDTH, PASSES>(&scaling, output, results);
            }
            first_feature += thread::opaque(thread::grid_dim_y()) * tile_width;
            if team > 1 {
                // The next tile's parts overwrite this one's.
                thread::sync_threads();
            }
        }
    }
}

/// The warp's number in its block, computed anew, so that it stays in no register while nonzeros stream.
#[inline(always)]
fn warp_in_block() -> u32 {
    thread::opaque(thread::thread_idx_x()) / WARP_SIZE
}

/// The warp's number in its team of so many warps, a power of two, computed anew.
#[inline(always)]
fn warp_in_team(team: u32) -> u32 {
    // Not by `%`, which would divide: the compiler does not know that it is a power of two.
    warp_in_block() & (team - 1)
}

/// The lane's number in its warp, computed anew.
#[inline(always)]
fn lane() -> u32 {
    thread::opaque(thread::thread_idx_x()) % WARP_SIZE
}

/// The first feature of the lane in the tile that starts at `first_feature`, computed anew.
#[inline(always)]
fn lane_feature<const LANES: u32, const WIDTH: usize>(first_feature: u32) -> u32 {
    first_feature + lane() % LANES * WIDTH as u32
}

/// The column and the value of a nonzero.
type Nonzero<T> = (u32, SumOf<T>);

/// The sum of a row, or of a warp's part of it: each sub-warp adds the nonzeros that its lanes hold. A lane holds one,
/// or two if its sub-warp would hold fewer than `UNROLL`.
struct RowSum<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize> {
    x: LaneColumns<T, LANES, WIDTH, PASSES>,
    /// The sums of the sub-warp's products so far.
    accumulators: Results<T::Sum, WIDTH, PASSES>,
}

#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
impl<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>
    RowSum<T, LANES, WIDTH, PASSES>
{
    #[inline(always)]
    fn new(x: &Dense<T>, feature: usize) -> Self {
        Self {
            x: LaneColumns::new(x, feature),
            accumulators: [[Total::start(); WIDTH]; PASSES],
        }
    }

    /// Nonzeros that the lanes of a warp hold.
    const CHUNK: u32 = if LANES < UNROLL as u32 {
        2 * WARP_SIZE
    } else {
        WARP_SIZE
    };

    /// Adds the warp's nonzeros between `start` and `end`: a chunk of every `stride` chunks, from the one numbered
    /// `first` on.
    ///
    /// # Safety
    ///
    /// They are nonzeros of A, whose columns are rows of X; all lanes of the warp call it with the same numbers.
    #[inline(always)]
    unsafe fn add_nonzeros(
        &mut self,
        a: &Csr<T::Sum>,
        start: u32,
        end: u32,
        first: u32,
        stride: u32,
    ) {
        let first = first * Self::CHUNK;
        if first >= end - start {
            return;
        }
        let (lane, step) = (lane(), stride * Self::CHUNK);
        let mut position = start + first;
        // Past the end it is column 0, which is loaded and not used.
        let nonzero = |position: u32, offset: u32| {
            if offset < end - position {
                let k = (position + offset) as usize;
                // SAFETY: `k` is below `end`, so it is a nonzero of A.
                unsafe { (a.col_idx.load(k), a.values.load(k)) }
            } else {
                (0, T::Sum::ZERO)
            }
        };
        let chunk = |position: u32, offset: u32| {
            let second = if const { Self::CHUNK > WARP_SIZE } {
                nonzero(position, offset + WARP_SIZE)
            } else {
                (0, T::Sum::ZERO)
            };
            [nonzero(position, offset), second]
        };
        let mut held = chunk(position, lane);
        loop {
            let next = chunk(position, step + lane);
            let count = (end - position).min(Self::CHUNK);
            let mut first = 0;
            loop {
                // SAFETY: the columns that the lanes hold are columns of A, or 0.
                unsafe { self.add_batch(held, first, count) };
                first += UNROLL as u32;
                if first >= LANES || first >= count {
                    break;
                }
            }
            if end - position <= step {
                return;
            }
            held = next;
            position += step;
        }
    }

    /// Adds `UNROLL` nonzeros a sub-warp, those that its lanes from `first` on hold; the warp's lanes hold `count`
    /// nonzeros, first one each.
    ///
    /// # Safety
    ///
    /// The columns that the lanes hold are rows of X.
    #[inline(always)]
    unsafe fn add_batch(&mut self, held: [Nonzero<T>; 2], first: u32, count: u32) {
        let (lane_of, slot_of) = (|i: usize| i as u32 % LANES, |i: usize| i / LANES as usize);
        // SAFETY: each column is a row of X, by this function's contract.
        unsafe {
            let elements: [[T::Vector; PASSES]; UNROLL] = array::from_fn(|i| {
                let col = held[slot_of(i)].0;
                self.x
                    .load(warp::shfl_idx(FULL_MASK, col, first + lane_of(i), LANES))
            });
            let value = |i: usize| {
                let value = held[slot_of(i)].1;
                warp::shfl_idx(FULL_MASK, value, first + lane_of(i), LANES)
            };
            if count == Self::CHUNK {
                unroll!(i in 0..8 {
                    self.add(value(i), elements[i]);
                });
            } else {
                let holder = lane() / LANES * LANES + first;
                unroll!(i in 0..8 {
                    let value = value(i);
                    if holder + lane_of(i) + slot_of(i) as u32 * WARP_SIZE < count {
                        self.add(value, elements[i]);
                    }
                });
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, value: T::Sum, elements: [T::Vector; PASSES]) {
        for pass in 0..PASSES {
            let (so_far, elements) = (self.accumulators[pass], elements[pass]);
            self.accumulators[pass] =
                array::from_fn(|k| Total::take(value, T::get(&elements, k), so_far[k]));
        }
    }

    /// Adds up the sums of the sub-warps; each sub-warp then has the total.
    #[inline(always)]
    fn join_sub_warps(&mut self) {
        let mut distance = LANES;
        while distance < WARP_SIZE {
            for pass in 0..PASSES {
                for k in 0..WIDTH {
                    let other =
                        warp::shfl_xor(FULL_MASK, self.accumulators[pass][k], distance, WARP_SIZE);
                    self.accumulators[pass][k] = Total::join(self.accumulators[pass][k], other);
                }
            }
            distance *= 2;
        }
    }
}

/// Adds up the parts of a team's row in the order of the warps; the first warp of the team then has the results.
///
/// # Safety
///
/// All threads of the block call it with the same `team`, a power of two of at most [`WARPS`]. They pass a barrier
/// before they call it again.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
unsafe fn join_warps<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>(
    results: &mut Results<T::Sum, WIDTH, PASSES>,
    warp_in_block: u32,
    team: u32,
) {
    let parts: Shared<T::Sum> = shared::dynamic_shared_mem();
    let lane = lane();
    // Neighbouring lanes' elements lie in neighbouring banks.
    let index = |pass: usize, k: usize, warp: u32| {
        (((pass * WIDTH + k) as u32 * WARPS + warp) * LANES + lane) as usize
    };
    // SAFETY: each warp writes its own part; they are read after the barrier.
    unsafe {
        if lane < LANES {
            for pass in 0..PASSES {
                for k in 0..WIDTH {
                    parts.store(index(pass, k, warp_in_block), results[pass][k]);
                }
            }
        }
        thread::sync_threads();
        if warp_in_team(team) == 0 && lane < LANES {
            for other in 1..WARPS {
                if other == team {
                    break;
                }
                for pass in 0..PASSES {
                    for k in 0..WIDTH {
                        let part = parts.load(index(pass, k, warp_in_block + other));
                        results[pass][k] = Total::join(results[pass][k], part);
                    }
                }
            }
        }
    }
}

const _: () = assert!(UNROLL == 8 && MIN_LANES * 2 == UNROLL as u32);
